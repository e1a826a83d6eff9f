import { ContainerModule } from 'inversify';
import { FileAuditLog } from '../../adapters/audit/file-audit-log.js';
import { AuditSubsystem } from '../../app/audit/audit-subsystem.js';
import { Ports, Root, Subsystems } from '../tokens.js';

/** Who did what, on a node and on a control plane alike. */
export const auditModule = new ContainerModule(({ bind }) => {
  bind(Ports.audit)
    .toResolvedValue(
      ({ paths }, clock, logger) =>
        new FileAuditLog({ file: paths.auditLog, clock, logger: logger.child({ subsystem: 'audit' }) }),
      [Root.facts, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
  bind(Subsystems.audit)
    .toResolvedValue((audit) => new AuditSubsystem(audit), [Ports.audit])
    .inSingletonScope();
});
