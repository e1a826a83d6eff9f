import { AgentError } from '../../domain/kernel/errors.js';
import type { Cursor, LogFrame, ProposeResult, Snapshot } from '../../domain/log/model.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { StateView } from '../../ports/log/state-view.js';

/**
 * The log as this node knows it, for those who ask the node: its head is the view's, so that they are answered also while the control plane
 * is away. What is to change is told to the control plane.
 */
export class LocalLog implements OrderedLog {
  readonly #view: StateView;

  constructor(view: StateView) {
    this.#view = view;
  }

  async propose(): Promise<ProposeResult> {
    throw elsewhere();
  }

  async snapshot(): Promise<Snapshot> {
    throw elsewhere();
  }

  /** @throws AgentError `log.closed` while nothing is known yet */
  async head(): Promise<Cursor> {
    const { cursor } = this.#view.state;
    if (cursor === undefined) throw new AgentError('log.closed', { problem: 'this node has not heard of its control plane yet' });
    return cursor;
  }

  // biome-ignore lint/correctness/useYield: it only refuses
  async *watch(): AsyncIterable<LogFrame> {
    throw elsewhere();
  }
}

function elsewhere(): AgentError {
  return new AgentError('log.denied', {
    problem: 'this is a node, not a control plane',
    remedy: 'ask the control plane: run the command there',
  });
}
