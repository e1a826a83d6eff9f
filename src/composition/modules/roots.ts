import { randomBytes } from 'node:crypto';
import type { ContainerModule } from 'inversify';
import { replaceFile } from '../../adapters/files/durable-file.js';
import { AuthoritySubsystem } from '../../app/certificate/authority-subsystem.js';
import type { IssuerAuthority } from '../../app/certificate/issuer-authority.js';
import { RootService } from '../../app/certificate/root-service.js';
import type { AuthorityMaker } from '../../ports/certificate/authority-maker.js';
import { FleetPorts, FleetSubsystems, FleetUseCases, Ports, Root } from '../tokens.js';

type Bind = Parameters<ConstructorParameters<typeof ContainerModule>[0]>[0]['bind'];

const WRITE_MS = 30_000;

/** How roots follow each other, and what of it shows at the ports of this replica. */
export function bindRoots(bind: Bind): void {
  bind(FleetUseCases.roots)
    .toResolvedValue(
      ({ store, sealer, maker }, revocations, clock) =>
        new RootService({ store, sealer, maker, revocations, clock, randomBytes }),
      [Root.controlPlane, FleetPorts.enrolmentView, Ports.clock],
    )
    .inSingletonScope();
  bind(FleetSubsystems.authorities)
    .toResolvedValue(
      ({ paths }, { store, sealer, maker, authorities }, clock, logger, container) =>
        new AuthoritySubsystem({
          ...{ store, sealer, maker, authorities, clock, logger, random: Math.random },
          onReplaced: (issuer) => {
            // No other issuer has a successor.
            if (issuer === 'admin') return;
            container.get(FleetSubsystems[issuer]).look();
            if (issuer === 'l2') return;
            const options = { mode: 0o644, signal: AbortSignal.timeout(WRITE_MS) };
            replaceFile(paths.registrationRoot, authorities.l1.root, options).catch((error: unknown) => {
              logger.error('the new root of registration is not in its file; the next start writes it', { error });
            });
          },
        }),
      [Root.facts, Root.controlPlane, Ports.clock, Ports.logger, Root.container],
    )
    .inSingletonScope();
}

/** Its fingerprint, read once: every heartbeat of every node is answered with it. */
export function rootNow(authority: IssuerAuthority, maker: AuthorityMaker): () => string {
  let known = { root: '', fingerprint: '' };
  return () => {
    const { root } = authority;
    if (root !== known.root) known = { root, fingerprint: maker.rootFacts(root).fingerprint };
    return known.fingerprint;
  };
}
