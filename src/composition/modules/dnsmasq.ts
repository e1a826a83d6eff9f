import { hash } from 'node:crypto';
import { ContainerModule } from 'inversify';
import { FileDnsmasqConfig } from '../../adapters/dnsmasq/file-dnsmasq-config.js';
import { SystemdUnits } from '../../adapters/service/systemd-units.js';
import { DnsmasqEffect } from '../../app/dnsmasq/dnsmasq-effect.js';
import { type AbsolutePath, under } from '../../domain/kernel/paths.js';
import { NodePorts, Ports, Root } from '../tokens.js';

/** Existing control planes and their scripts know it by this name. */
export const DNSMASQ_FILE = '/etc/dnsmasq.d/runos.conf' as AbsolutePath;

export const dnsmasqModule = new ContainerModule(({ bind }) => {
  bind(NodePorts.dnsmasq)
    .toResolvedValue(
      ({ paths }, { root, machine }, commands, clock) =>
        new DnsmasqEffect({
          config: new FileDnsmasqConfig({ file: under(root, DNSMASQ_FILE), memoryFile: paths.dnsmasqMemory, commands }),
          units: new SystemdUnits({ commands }),
          clock,
          sha256: (data) => hash('sha256', data, 'hex'),
          boot: machine.boot,
        }),
      [Root.facts, Root.node, Ports.commands, Ports.clock],
    )
    .inSingletonScope();
});
