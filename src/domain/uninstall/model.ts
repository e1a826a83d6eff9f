import type { AbsolutePath, Paths } from '../kernel/paths.js';

/** `cleanup`: what the node has made on the machine beside its own state, which stays. `uninstall`: that, and the node itself. */
export type RemovalScope = 'cleanup' | 'uninstall';

export interface RemovalPlaces {
  readonly paths: Paths;
  /** Prefix of every absolute path. */
  readonly root: AbsolutePath;
}

/**
 * What is done in one step. Each can be done again, whatever is left of what it removes: absent is success. None touches what does not bear
 * a mark of ours.
 */
export type RemovalAct =
  /** A program of the machine. Not at all where `onlyIf` fails, or one of both programs is missing. */
  | {
      readonly do: 'run';
      readonly argv: Argv;
      readonly onlyIf?: Argv | undefined;
      /** Its process group is killed then. */
      readonly timeoutMs: number;
    }
  /** Waits until no daemon uses the data directory; nothing is done after it as long as one does. */
  | { readonly do: 'hold_data_dir' }
  /** Ends what instructions have started and is still running. */
  | { readonly do: 'end_tasks' }
  /** The interface that has this node's key, with its routes, and what the firewall lets in from it. */
  | { readonly do: 'remove_overlay' }
  /** Our table of rules. */
  | { readonly do: 'remove_rules' }
  /** What was set, unless somebody has set it otherwise since. */
  | { readonly do: 'restore_sysctls' }
  /** The configuration that this node has placed, unless somebody has changed it since. */
  | { readonly do: 'remove_dnsmasq' }
  /** Lets go of every mount below, without waiting for who uses it. */
  | { readonly do: 'unmount_below'; readonly path: AbsolutePath }
  | { readonly do: 'remove_file'; readonly path: AbsolutePath }
  /** The entries of a folder that bear these names, in this order, and the folder when nothing else is in it. */
  | { readonly do: 'remove_state'; readonly folder: AbsolutePath; readonly names: readonly string[] };

export type Argv = readonly [string, ...string[]];

export type RemovalStep = RemovalAct & {
  /** Whose it is. */
  readonly capability: string;
  /** For people: `the interface wg0`. */
  readonly what: string;
};

/** What a capability has made, and how it goes again. */
export interface Removal {
  readonly capability: string;
  steps(places: RemovalPlaces, scope: RemovalScope): readonly (RemovalAct & { readonly what: string })[];
}

export type RemovalPlan = { readonly do: 'uninstall_node' } | { readonly do: 'reinstall_node'; readonly command: string };

/**
 * That this node is to be removed, kept beside the data directory until all is done. `removing`: any step may be repeated. `installing`: the
 * command of a reinstall may have begun, and is not run again.
 */
export interface RemovalOrder {
  readonly kind: 'uninstall' | 'reinstall';
  /** The id of the instruction's task; undefined: a person has asked for it. */
  readonly task: string | undefined;
  readonly stage: 'removing' | 'installing';
  /** Wall clock, milliseconds. */
  readonly at: number;
}
