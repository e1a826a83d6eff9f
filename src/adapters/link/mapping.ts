import type { InstallCommand } from '../../domain/install/model.js';
import { type InstallProgress, type NodelogEntry, nodelogSeverity, type OverlayPeer } from '../../domain/link/calls.js';
import type {
  AddNodelogRequest,
  InstallCommandList_InstallCommand,
  UpdateNodeInstallationStatusRequest,
  VpnPeer,
} from '../generated/runos/nodeward/proto/l2sec/l2sec.js';

export function overlayPeer({ pubKey, endpointIp, ip, extraAllowedIps }: VpnPeer): OverlayPeer {
  return { pubKey, endpointIp, ip, extraAllowedIps };
}

export function nodelogEntry({ severity, type, message, code, cause, remedy, docsUrl }: AddNodelogRequest): NodelogEntry {
  return { severity: nodelogSeverity(severity), type, message, code, cause, remedy, docsUrl };
}

export function installProgress(request: UpdateNodeInstallationStatusRequest): InstallProgress {
  const { stepCompleted, errorAtStep, errorMessage } = request;
  return { stepCompleted, errorAtStep, errorMessage };
}

export function installCommand(from: InstallCommandList_InstallCommand): InstallCommand {
  const { commandId: id, command, afterCommandId: after, ignoreFailure } = from;
  const { afterCommandIdResultMatches: matches, afterCommandIdResultDoesNotMatch: doesNotMatch } = from;
  return { id, command, after, matches, doesNotMatch, ignoreFailure };
}
