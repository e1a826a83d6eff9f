import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { credentials } from '@grpc/grpc-js';
import {
  AdminServiceClient,
  type ApplyRequest,
  type ApplyResponse,
  type DeleteRequest,
  type StatusResponse,
} from '../../../src/adapters/generated/holdfast/admin/v1/admin.js';

/** The admin API of a daemon without a process of the CLI per call: tests that change something many times a second need it. */
export class Admin implements Disposable {
  readonly #client: InstanceType<typeof AdminServiceClient>;

  constructor(dataDir: string) {
    const socket = join(dataDir, 'admin', 'admin.sock');
    this.#client = new AdminServiceClient(`unix:${socket}`, credentials.createInsecure(), {
      'grpc.default_authority': 'localhost',
      'grpc.enable_http_proxy': 0,
    });
  }

  /** @throws Error when it is refused */
  async apply(manifests: readonly object[]): Promise<ApplyResponse> {
    const call = promisify<ApplyRequest, ApplyResponse>(this.#client.apply.bind(this.#client));
    const documents = manifests.map((value, number) => ({ file: 'test', number, path: '', json: JSON.stringify(value) }));
    const response = await call({ documents, source: 'test', prune: false, dryRun: false, requestId: randomUUID() });
    if (response.problems.length > 0) throw new Error(JSON.stringify(response.problems));
    return response;
  }

  async deleteService(name: string): Promise<void> {
    const call = promisify<DeleteRequest, unknown>(this.#client.delete.bind(this.#client));
    const refs = [{ kind: 'Service', namespace: 'default', name }];
    await call({ refs, dryRun: false, requestId: randomUUID(), ignoreNotFound: false });
  }

  status(): Promise<StatusResponse> {
    return promisify<object, StatusResponse>(this.#client.status.bind(this.#client))({});
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}
