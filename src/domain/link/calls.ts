/** A node of the overlay as `ManualSync` says it. */
export interface OverlayPeer {
  /** 43 characters of base64 and `=`. */
  readonly pubKey: string;
  /** Empty for a peer behind NAT. */
  readonly endpointIp: string;
  readonly ip: string;
  readonly extraAllowedIps: readonly string[];
}

/** What `ManualSync` answers. */
export interface OverlaySet {
  readonly peers: readonly OverlayPeer[];
  /** The node's own address and the prefix of the overlay, `10.78.0.3/16`; empty: the server has no overlay, or is an older one. */
  readonly address: string;
}

export interface ControlPlaneNode {
  readonly vpnIp: string;
  /** `https://host:port` or `host:port`. */
  readonly kubeEndpoint: string;
}

/** A line of a node's log at the control plane. */
export interface NodelogEntry {
  readonly type: string;
  readonly severity: NodelogSeverity;
  readonly message: string;
  readonly code: string;
  readonly cause: string;
  readonly remedy: string;
  readonly docsUrl: string;
}

export type NodelogSeverity = 'failure' | 'warning' | 'info';
const severities: readonly NodelogSeverity[] = ['failure', 'warning', 'info'];

export function severityNumber(severity: NodelogSeverity): number {
  return severities.indexOf(severity) + 1;
}

/** What is not known is information. */
export function nodelogSeverity(value: number): NodelogSeverity {
  return severities[value - 1] ?? 'info';
}

/** How far an install has come; step 0 is none. */
export interface InstallProgress {
  readonly stepCompleted: number;
  readonly errorAtStep: number;
  readonly errorMessage: string;
}
