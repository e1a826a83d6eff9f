import { RemoteLogConsumer } from '../../src/app/log/remote-log-consumer.js';
import { ViewKeeper } from '../../src/app/log/view-keeper.js';
import { canonicalJson } from '../../src/domain/kernel/canonical-json.js';
import { visibleItems } from '../../src/domain/log/filter.js';
import { STALE_AFTER_MS } from '../../src/domain/log/freshness.js';
import { type Change, logKey } from '../../src/domain/log/model.js';
import { nodeReads } from '../../src/domain/log/visibility.js';
import { FakeClock } from '../fakes/fake-clock.js';
import { FakeLogger } from '../fakes/fake-logger.js';
import { FakeOrderedLog } from '../fakes/fake-ordered-log.js';
import { FakeRemoteLog } from '../fakes/fake-remote-log.js';
import { type FakeViewFile, FakeViewStore } from '../fakes/fake-view-store.js';
import { service } from './small-cluster.js';

export const options = { signal: new AbortController().signal };

export const put = (name: string, spec: object = {}): Change => ({
  key: logKey(`service/default/${name}`),
  value: canonicalJson({ ...service(name, spec), source: 'test' }),
});
export const drop = (name: string): Change => ({ key: logKey(`service/default/${name}`), value: null });
export const hidden = (name: string, value = '1'): Change => ({ key: logKey(`secret/default/${name}`), value });
export const health = (name: string, value: string | null): Change => ({
  key: logKey(`health/default/${name}/10.0.0.1:80`),
  value,
});

/** An agent's consumer on a control plane that can be cut off and replaced; its view's file outlives it. */
export class RemoteRig {
  readonly clock = new FakeClock();
  readonly log = new FakeRemoteLog(new FakeOrderedLog({ clock: this.clock }));
  readonly file: FakeViewFile = {};
  readonly logger = new FakeLogger();
  store = new FakeViewStore(this.file);
  consumer = this.#make();
  /** What listeners were told. */
  readonly told: string[] = [];

  #make(): RemoteLogConsumer {
    const { clock, logger, log } = this;
    const parts = { clock, logger, random: () => 0.5 };
    const keeper = new ViewKeeper({ ...parts, store: this.store, binding: { fleet: 'f', nid: 'n', registration: 'r' } });
    return new RemoteLogConsumer({ ...parts, log, keeper, bootTime: () => clock.monotonic(), staleAfterMs: STALE_AFTER_MS });
  }

  async start(): Promise<void> {
    this.consumer.onChange(({ services, changes }) =>
      this.told.push(
        [
          ...changes.map(({ ref, after }) => `${after === undefined ? '-' : '+'}${ref.name}`),
          ...(changes.length > 0 ? [] : services),
        ].join(' '),
      ),
    );
    await this.consumer.start(options.signal);
    await this.clock.advance(0);
  }

  /** Another process on the same file. `crash`: without the goodbye of the old one. */
  async restart({ crash = false } = {}): Promise<void> {
    const before = this.consumer;
    if (crash) this.store.failNext(1_000);
    await before.stop(options.signal);
    this.store = new FakeViewStore(this.file);
    this.consumer = this.#make();
    this.told.length = 0;
    await this.start();
  }

  async write(...changes: readonly Change[]): Promise<void> {
    await this.log.inner.propose({ changes, preconditions: [] }, options);
    await this.clock.advance(0);
  }

  /** The control plane has another log from now on. */
  async replaceLog(...changes: readonly Change[]): Promise<void> {
    this.log.inner = new FakeOrderedLog({ clock: this.clock });
    if (changes.length > 0) await this.log.inner.propose({ changes, preconditions: [] }, options);
    this.log.cut();
  }

  /** Services as the consumer has them, with where they were changed. */
  held(): string {
    return [...this.consumer.state.all()]
      .map(({ resource, revision }) => `${resource.metadata.name}@${revision}`)
      .sort()
      .join(' ');
  }

  /** As the control plane has what a node may see. */
  async wanted(): Promise<string> {
    const { items } = await this.log.inner.snapshot('service/', options);
    return visibleItems(items, nodeReads)
      .map(({ key, revision }) => `${key.slice('service/default/'.length)}@${revision}`)
      .sort()
      .join(' ');
  }
}
