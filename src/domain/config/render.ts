import { formatDuration } from '../kernel/duration.js';
import { formatAddressPort, formatIpv4Range } from '../kernel/network.js';
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
      return formatDuration(config[setting]);
    case 'busyPollUs':
      return config.busyPollUs === 0 ? 'off' : `${config.busyPollUs}us`;
    case 'vipRange':
      return formatIpv4Range(config.vipRange);
    case 'metricsListen': {
      const listen = config.metricsListen;
      return listen === 'off' ? listen : formatAddressPort(listen.address, listen.port);
    }
    case 'logLevel':
    case 'outboxCapacity':
    case 'threads':
    case 'maxConnections':
    case 'ejectionFailures':
      return String(config[setting]);
  }
}
