import { describe, expect, test } from 'vitest';
import type { NodeRoles } from '../../src/ports/link/node-roles.js';

export interface NodeRolesUnderTest {
  readonly roles: NodeRoles;
  /** The node becomes a ready control plane that is no worker. */
  becomeControlPlane(): Promise<void>;
  /** Whoever says the roles stops answering well. */
  breakDown(): Promise<void>;
  /** Whoever says the roles takes the question and never answers. */
  fallSilent(): Promise<void>;
}

const signal = AbortSignal.timeout(60_000);

/** Every NodeRoles must pass. It begins on a node without Kubernetes. */
export function nodeRolesContract(name: string, make: () => Promise<NodeRolesUnderTest>): void {
  describe(`NodeRoles: ${name}`, () => {
    test('a node without Kubernetes', async () => {
      const { roles } = await make();
      expect(await roles.read({ signal })).toEqual({ isCp: false, isWorker: false, status: 'not_installed' });
    });

    test('each read is a new one', async () => {
      const { roles, becomeControlPlane } = await make();
      await roles.read({ signal });
      await becomeControlPlane();
      expect(await roles.read({ signal })).toEqual({ isCp: true, isWorker: false, status: 'ready' });
    });

    test('what cannot be read is an error, and no role taken away; it may work again', async () => {
      const { roles, becomeControlPlane, breakDown } = await make();
      await becomeControlPlane();
      await breakDown();
      await expect(roles.read({ signal })).rejects.toMatchObject({ code: 'link.roles_unreadable' });
      await becomeControlPlane();
      expect((await roles.read({ signal })).isCp).toBe(true);
    });

    test('an abort ends it with its reason, before and meanwhile', async () => {
      const { roles, becomeControlPlane, fallSilent } = await make();
      const reason = new Error('enough');
      await expect(roles.read({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      await becomeControlPlane();
      await fallSilent();
      const abort = new AbortController();
      const reading = roles.read({ signal: abort.signal });
      setTimeout(() => abort.abort(reason), 20);
      await expect(reading).rejects.toBe(reason);
    });
  });
}
