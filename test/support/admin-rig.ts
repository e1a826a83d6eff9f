import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { GrpcAdminClient } from '../../src/adapters/admin/grpc-admin-client.js';
import { GrpcAdminServer, type GrpcAdminServerParts } from '../../src/adapters/admin/grpc-admin-server.js';
import { loadAddon } from '../../src/adapters/dataplane/addon.js';
import { ExplainService } from '../../src/app/dataplane/explain-service.js';
import type { NodeName } from '../../src/domain/identity/model.js';
import { type AbsolutePath, absolutePath } from '../../src/domain/kernel/paths.js';
import { FakeDataPlane } from '../fakes/fake-data-plane.js';
import { FakeLogger } from '../fakes/fake-logger.js';
import { FakeOperations } from '../fakes/fake-operations.js';
import { resourceRig } from './resource-rig.js';
import { tempFolder } from './temp-folder.js';

export function absolute(path: string): AbsolutePath {
  const parsed = absolutePath(path);
  if (parsed === undefined) throw new Error(`not absolute: ${path}`);
  return parsed;
}

/** An admin server on a real socket, in front of use cases on a log in memory. It is stopped with the test. */
export async function adminRig(parts: Partial<GrpcAdminServerParts> = {}) {
  const rig = await resourceRig();
  const operations = new FakeOperations();
  const logger = new FakeLogger();
  const dataDir = parts.folder === undefined ? await tempFolder() : join(parts.folder, '..');
  const folder = absolute(join(dataDir, 'admin'));
  const socket = absolute(join(folder, 'admin.sock'));
  const addon = loadAddon();
  const explainer = new ExplainService({
    ...{ nodeId: 'n1' as NodeName, log: rig.log, view: rig.view, listeners: rig.listeners },
    dataPlane: new FakeDataPlane(),
    kernel: false,
  });
  const server = new GrpcAdminServer({
    folder,
    socket,
    resources: rig.resources,
    operations,
    explainer,
    logger,
    peerUid: (descriptor) => addon.peerUid(descriptor),
    ...parts,
  });
  onTestFinished(() => server.stop());
  const client = () => {
    const made = new GrpcAdminClient(socket);
    onTestFinished(() => made.close());
    return made;
  };
  return { ...rig, operations, explainer, logger, dataDir, folder, socket, server, client };
}
