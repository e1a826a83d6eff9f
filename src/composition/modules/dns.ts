import { ContainerModule } from 'inversify';
import { DnsServer } from '../../adapters/dns/dns-server.js';
import { NativeDnsResponder } from '../../adapters/dns/native-dns-responder.js';
import { OptionalServerSubsystem } from '../../app/agent/optional-server-subsystem.js';
import { ZoneAnswers } from '../../app/dns/zone-answers.js';
import { ZoneFeed } from '../../app/dns/zone-feed.js';
import { Ports, Root, Servers, Subsystems } from '../tokens.js';

/** Names of services by DNS. */
export const dnsModule = new ContainerModule(({ bind }) => {
  bind(Subsystems.dnsZone)
    .toResolvedValue(
      ({ config: { dnsListen, dnsZone } }, view) =>
        new ZoneAnswers({ view, origin: dnsZone, server: dnsListen === 'off' ? undefined : dnsListen.address }),
      [Root.facts, Subsystems.logConsumer],
    )
    .inSingletonScope();
  bind(Ports.dnsResponder)
    .toResolvedValue(({ addon }) => new NativeDnsResponder(() => addon), [Root.facts])
    .inSingletonScope();
  bind(Subsystems.dnsFeed)
    .toResolvedValue(
      ({ config }, view, { zone }, responder, clock, logger) =>
        new ZoneFeed({
          ...{ view, zone, responder, isServing: config.dnsListen !== 'off', clock, random: Math.random },
          logger: logger.child({ subsystem: 'dns' }),
        }),
      [Root.facts, Subsystems.logConsumer, Subsystems.dnsZone, Ports.dnsResponder, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
  bind(Servers.dns)
    .toResolvedValue(
      ({ mode, config }, answers, responder, logger) =>
        new DnsServer({
          ...{ listen: config.dnsListen, mayMove: mode === 'dev', responder, answers },
          logger: logger.child({ subsystem: 'dns' }),
        }),
      [Root.facts, Subsystems.dnsZone, Ports.dnsResponder, Ports.logger],
    )
    .inSingletonScope();
  bind(Subsystems.dns)
    .toResolvedValue(
      (server, clock, logger) => new OptionalServerSubsystem({ name: 'dns', server, clock, random: Math.random, logger }),
      [Servers.dns, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
});
