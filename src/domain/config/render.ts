import { formatName } from '../dns/name.js';
import { formatDuration } from '../kernel/duration.js';
import { formatAddressPort, formatHostPort, formatIpv4Range } from '../kernel/network.js';
import type { Config, Setting } from './model.js';

/** A setting as people write it; what is not set by what it comes to. */
export function renderSetting(setting: Setting, config: Config): string {
  switch (setting) {
    case 'nodeName':
      return config.nodeName ?? 'first label of the host name';
    case 'labels': {
      const pairs = Object.entries(config.labels).map(([key, value]) => `${key}=${value}`);
      return pairs.length === 0 ? 'none' : pairs.join(',');
    }
    case 'readyTimeoutMs':
    case 'connectTimeoutMs':
    case 'ejectionReturnMs':
    case 'handoverGraceMs':
    case 'staleAfterMs':
      return formatDuration(config[setting]);
    case 'tableOwner':
    case 'manageSysctls':
      return config[setting] ? 'on' : 'off';
    case 'markBits':
      return `${config.markBits.carried},${config.markBits.cut}`;
    case 'busyPollUs':
      return config.busyPollUs === 0 ? 'off' : `${config.busyPollUs}us`;
    case 'vipRange':
      return formatIpv4Range(config.vipRange);
    case 'metricsListen':
    case 'dnsListen':
    case 'serverAdminListen':
    case 'serverMetricsListen': {
      const listen = config[setting];
      return listen === 'off' ? listen : formatAddressPort(listen.address, listen.port);
    }
    case 'serverL1Listen':
    case 'serverL2Listen':
      return formatAddressPort(config[setting].address, config[setting].port);
    case 'serverHosts':
      return listed(config.serverHosts, 'those of the machine');
    case 'serverEtcd':
      return listed(config.serverEtcd, 'none');
    case 'serverEtcdCa':
      return config.serverEtcdCa ?? "the system's";
    case 'serverEtcdCert':
    case 'serverEtcdKey':
      return config[setting] ?? 'none';
    case 'nodeward':
      return listed(config.nodeward.map(formatHostPort), 'where the node was registered');
    case 'conductor':
      return config.conductor ?? "follows from the installer's";
    case 'nodeIp':
      return config.nodeIp ?? "the connection's";
    case 'instructionsAllow':
    case 'scriptsAllow':
    case 'kubectlAllow':
      return listed(config[setting] ?? [], 'all');
    case 'instructionsDeny':
    case 'scriptsDeny':
    case 'kubectlDeny':
      return listed(config[setting], 'none');
    case 'overlayCidr':
      return config.overlayCidr === undefined ? 'none' : formatIpv4Range(config.overlayCidr);
    case 'overlayEndpoint':
      return config.overlayEndpoint ?? "the connection's";
    case 'overlayNetworks':
      return listed(config.overlayNetworks.map(formatIpv4Range), 'none');
    case 'dnsZone':
      return formatName(config.dnsZone).slice(0, -1);
    case 'vipAddress':
      return config.vipAddress ?? 'none';
    case 'vipInterface':
      return config.vipInterface ?? 'that of its network';
    case 'vipCandidates':
      return listed(config.vipCandidates, 'none');
    case 'dataPath':
    case 'vipOnDisconnect':
    case 'logLevel':
    case 'outboxCapacity':
    case 'serverAccount':
    case 'serverEtcdCluster':
    case 'installer':
    case 'packages':
    case 'auditOnFailure':
    case 'threads':
    case 'maxConnections':
    case 'ejectionFailures':
      return String(config[setting]);
  }
}

function listed(values: readonly string[], none: string): string {
  return values.length === 0 ? none : values.join(',');
}
