/** Something that others call this process through. */
export interface DrivingServer {
  /** Serves when it resolves; may then be called again, and changes nothing. On rejection nothing is left behind after `stop`. */
  start(): Promise<void>;
  /** Calls in progress are ended. Safe before `start`, after a failed one, and twice. */
  stop(): Promise<void>;
}
