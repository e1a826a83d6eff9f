/** Something that others call this process through. */
export interface DrivingServer {
  /** Serves when it resolves. On rejection nothing is left behind after `stop`. */
  start(): Promise<void>;
  /** Calls in progress are ended. Safe before `start`, after a failed one, and twice. */
  stop(): Promise<void>;
}
