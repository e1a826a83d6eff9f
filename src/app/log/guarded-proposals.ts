import type { NodeName } from '../../domain/identity/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Nid } from '../../domain/link/model.js';
import type { Precondition, Proposal, ProposeResult } from '../../domain/log/model.js';
import { NodeObjects } from '../../domain/log/node-objects.js';
import { MOST_OBJECTS, NodeWrites, tooLarge } from '../../domain/log/node-writes.js';
import { PROPOSALS_PER_SECOND, Rate } from '../../domain/log/rate.js';
import { nodeReads } from '../../domain/log/visibility.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { NodeProposals } from '../../ports/driving/node-proposals.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Subsystem } from '../agent/subsystem.js';

/** A judgement is made anew when what it rests on has changed meanwhile; so often, then the caller is told. */
const MOST_ATTEMPTS = 5;
/** Of changes as of preconditions: no node has more to say at once, and each is judged. */
const MOST_IN_PROPOSAL = MOST_OBJECTS;
/** A UUID has 36. It is kept for as long as its entry. */
const MOST_REQUEST_ID = 128;

export interface GuardedProposalsParts {
  readonly log: OrderedLog;
  /** Of the same log. */
  readonly view: StateView;
  readonly clock: Clock;
  /** The name under which a node stands in resources; undefined while it is not known. */
  readonly nodeIdOf: (node: PeerNode) => NodeName | undefined;
}

/** Lets nodes write what is their own (engine.md E17): judged on the view, and committed only if that is still so. */
export class GuardedProposals implements Subsystem, NodeProposals {
  readonly name = 'node-proposals';
  readonly #parts: GuardedProposalsParts;
  readonly #rates = new Map<Nid, Rate>();
  #objects: NodeObjects | undefined;
  #limited = 0;
  #unsubscribe: (() => void) | undefined;

  constructor(parts: GuardedProposalsParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { view } = this.#parts;
    const objects = new NodeObjects(view.state);
    this.#objects = objects;
    this.#unsubscribe = view.onChange((touched) => objects.follow(view.state, touched));
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#objects = undefined;
  }

  /** Proposals that came too fast, since the start. */
  get limited(): number {
    return this.#limited;
  }

  async propose(node: PeerNode, proposal: Proposal, options: CallOptions): Promise<ProposeResult> {
    const { nid } = node.identity;
    if (!this.#rateOf(nid).take(this.#parts.clock.monotonic())) {
      this.#limited += 1;
      throw new AgentError('log.too_many', { problem: `more than ${PROPOSALS_PER_SECOND} proposals in a second` });
    }
    checkSize(proposal);
    const nodeId = this.#parts.nodeIdOf(node);
    if (nodeId === undefined) throw new AgentError('log.denied', { problem: `it is not known which node ${nid} is` });
    const requestId = proposal.requestId === undefined ? undefined : `${nid}/${proposal.requestId}`;
    return this.#commit(nodeId, { ...proposal, ...(requestId === undefined ? {} : { requestId }) }, options);
  }

  async #commit(node: NodeName, proposal: Proposal, options: CallOptions): Promise<ProposeResult> {
    const { log, view } = this.#parts;
    for (let attempt = 1; ; attempt += 1) {
      const own = this.#judge(node, proposal);
      const result = await log.propose({ ...proposal, preconditions: [...proposal.preconditions, ...own] }, options);
      if (result.outcome !== 'conflict' || proposal.preconditions.some(({ key }) => key === result.key)) return result;
      if (attempt === MOST_ATTEMPTS)
        throw new AgentError('log.not_written', {
          problem: `${result.key} changes faster than it can be judged`,
          remedy: 'try again',
        });
      await view.reached((await log.head(options)).revision, options);
    }
  }

  /** What has to be so for the proposal to be allowed. @throws AgentError `log.denied`, `log.too_large`, `log.too_many` */
  #judge(node: NodeName, { changes, preconditions }: Proposal): readonly Precondition[] {
    const { view } = this.#parts;
    const writes = new NodeWrites(view.state, node);
    for (const { key } of preconditions) if (!nodeReads(key)) throw denied(`nodes do not read ${key}`);
    for (const change of changes) {
      const large = tooLarge(change);
      if (large !== undefined) throw new AgentError('log.too_large', { problem: large, remedy: 'write smaller objects' });
      const refusal = writes.refuse(change);
      if (refusal !== undefined) throw denied(refusal);
    }
    const count = this.#objects?.countAfter(node, changes) ?? 0;
    if (count > MOST_OBJECTS && count > (this.#objects?.count(node) ?? 0))
      throw new AgentError('log.too_many', {
        problem: `${count} objects of the node ${node}, at most ${MOST_OBJECTS} are taken`,
      });
    return changes.map(({ key }) => ({ key, revision: writes.judgedAt(key) }));
  }

  #rateOf(nid: Nid): Rate {
    const known = this.#rates.get(nid);
    if (known !== undefined) return known;
    const rate = new Rate(PROPOSALS_PER_SECOND, this.#parts.clock.monotonic());
    this.#rates.set(nid, rate);
    return rate;
  }
}

/** @throws AgentError `log.too_large`, `log.invalid` */
function checkSize({ changes, preconditions, requestId }: Proposal): void {
  const count = Math.max(changes.length, preconditions.length);
  if (count > MOST_IN_PROPOSAL)
    throw new AgentError('log.too_large', {
      problem: `${count} changes, at most ${MOST_IN_PROPOSAL} are taken of a node at once`,
      remedy: 'split the change',
    });
  if (requestId !== undefined && !/^[!-~]+$/.test(requestId))
    throw new AgentError('log.invalid', { problem: 'a request id is of printable ASCII without spaces' });
  if (requestId !== undefined && requestId.length > MOST_REQUEST_ID)
    throw new AgentError('log.invalid', { problem: `a request id has at most ${MOST_REQUEST_ID} characters` });
}

function denied(problem: string): AgentError {
  return new AgentError('log.denied', { problem });
}
