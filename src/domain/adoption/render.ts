import { defaults } from '../config/defaults.js';
import { formatHostPort } from '../kernel/network.js';
import { type AdoptionRecord, LEGACY_CONFIG, type LegacyAgent } from './model.js';

export function encodeAdoption({ server, ...rest }: AdoptionRecord): string {
  return `${JSON.stringify({ ...rest, server: formatHostPort(server) }, undefined, 2)}\n`;
}

/**
 * The settings that differ from what this agent takes by itself, in the shape of its configuration file. The control plane is none of
 * them: it stands where a registration writes it, so that the next registration counts.
 */
export function adoptedSettings({ installer, conductor, nodeIp }: LegacyAgent): Readonly<Record<string, object>> {
  const usual = defaults('production');
  const server = {
    ...(installer === undefined || installer === usual.installer ? {} : { installer }),
    ...(conductor === undefined ? {} : { conductor }),
  };
  return {
    ...(Object.keys(server).length === 0 ? {} : { client: { server } }),
    ...(nodeIp === undefined ? {} : { node: { ip: nodeIp } }),
  };
}

/** The configuration file that says them. JSON is YAML. */
export function renderAdopted(agent: LegacyAgent): string {
  const lines = Object.entries(adoptedSettings(agent)).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return [`# Made by \`holdfast adopt\` of ${LEGACY_CONFIG}: what differs from the defaults.`, ...lines, ''].join('\n');
}
