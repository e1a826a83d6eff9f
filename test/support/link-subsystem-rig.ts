import type { LinkSession, LinkUser } from '../../src/app/link/link-session.js';
import { LinkSubsystem, type LinkSubsystemParts } from '../../src/app/link/link-subsystem.js';
import type { ServerMessage } from '../../src/domain/link/model.js';
import { FakeClock } from '../fakes/fake-clock.js';
import { FakeControlLink } from '../fakes/fake-control-link.js';
import { FakeLogger } from '../fakes/fake-logger.js';
import { FakeNodeRoles } from '../fakes/fake-node-roles.js';

export const home = { host: 'cp', port: 9192 };

/** Writes down what it is told, and takes what its test lets it take. */
export class RecordingUser implements LinkUser {
  readonly told: string[] = [];
  session: LinkSession | undefined;
  takes: (message: ServerMessage) => boolean = () => true;

  opened(session: LinkSession): void {
    this.session = session;
    this.told.push(`opened ${session.server?.epoch ?? 'old'}`);
  }

  received(_: LinkSession, message: ServerMessage): boolean {
    if (!this.takes(message)) return false;
    this.told.push(`received ${message.type} ${message.tag}`);
    return true;
  }

  closed(session: LinkSession): void {
    this.told.push(`closed ${session.server?.epoch ?? 'old'}`);
  }
}

export function linkRig(more: Partial<LinkSubsystemParts> = {}) {
  const clock = new FakeClock();
  const [link, roles, user, logger] = [new FakeControlLink(clock), new FakeNodeRoles(), new RecordingUser(), new FakeLogger()];
  let tags = 0;
  const parts: LinkSubsystemParts = {
    link,
    addresses: [home],
    facts: () => ({
      instance: 'i1',
      boot: 'b1',
      hardware: 'h1',
      journal: { id: 'j1', counter: 1n },
      capabilities: new Set(['journal', 'result-ack']),
    }),
    roles,
    users: [user],
    version: '1.0.0',
    nodeIp: undefined,
    auditHead: () => undefined,
    newTag: () => `own-${++tags}`,
    clock,
    bootTime: () => clock.monotonic(),
    random: () => 0.5,
    logger,
    ...more,
  };
  return { clock, link, roles, user, logger, subsystem: new LinkSubsystem(parts) };
}
