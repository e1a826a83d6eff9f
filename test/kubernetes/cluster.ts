import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type NetworkSpace, spawnIn } from '../system/support/fleet-network.js';

const execute = promisify(execFile);

/** Where `scripts/build-kubernetes` has put the programs. */
export function binaries(): string {
  const bin = process.env.HOLDFAST_K8S_BIN;
  if (bin === undefined) throw new Error('HOLDFAST_K8S_BIN is not set: run it by `npm run test:kubernetes`');
  return bin;
}

const READY_MS = 60_000;

/** A control plane of Kubernetes without machines: kubeadm's certificates, an etcd and an API server, in a namespace of a network. */
export class Cluster implements AsyncDisposable {
  readonly #space: NetworkSpace;
  readonly #etc: string;
  readonly #processes: ChildProcess[] = [];

  private constructor(space: NetworkSpace, root: string) {
    this.#space = space;
    this.#etc = join(root, 'etc/kubernetes');
  }

  static async start(space: NetworkSpace, root: string): Promise<Cluster> {
    const cluster = new Cluster(space, root);
    try {
      await cluster.#certificates();
      cluster.#run('etcd', [], cluster.#etcd(root));
      cluster.#run(join(binaries(), 'kube-apiserver'), [], cluster.#apiServer());
      await cluster.#ready();
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  /** As an administrator of the cluster, who is not the agent. */
  async kubectl(...args: readonly string[]): Promise<string> {
    const argv = [join(binaries(), 'kubectl'), '--kubeconfig', join(this.#etc, 'admin.conf'), ...args];
    return (await this.#within(argv)).trim();
  }

  async helm(...args: readonly string[]): Promise<string> {
    return this.#within([join(binaries(), 'helm'), '--kubeconfig', join(this.#etc, 'admin.conf'), ...args]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#processes.splice(0).reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
  }

  async #certificates(): Promise<void> {
    await mkdir(join(this.#etc, 'enc'), { recursive: true });
    const config = join(this.#etc, 'kubeadm-config.yaml');
    const { address, name } = this.#space;
    await writeFile(
      config,
      `apiVersion: kubeadm.k8s.io/v1beta2
kind: InitConfiguration
localAPIEndpoint: { advertiseAddress: ${address}, bindPort: 6443 }
nodeRegistration: { name: ${name} }
---
apiVersion: kubeadm.k8s.io/v1beta2
kind: ClusterConfiguration
kubernetesVersion: v1.20.2
controlPlaneEndpoint: ${address}:6443
certificatesDir: ${this.#etc}/pki
networking: { serviceSubnet: 10.96.0.0/12 }
`,
    );
    const kubeadm = join(binaries(), 'kubeadm');
    await this.#within([kubeadm, 'init', 'phase', 'certs', 'all', '--config', config]);
    await this.#within([kubeadm, 'init', 'phase', 'kubeconfig', 'admin', '--config', config, '--kubeconfig-dir', this.#etc]);
  }

  #etcd(root: string): readonly string[] {
    const pki = join(this.#etc, 'pki/etcd');
    const urls = (port: number) => `https://127.0.0.1:${port},https://${this.#space.address}:${port}`;
    const peer = `https://${this.#space.address}:2380`;
    return [
      ...['--name', this.#space.name, '--data-dir', join(root, 'etcd'), '--log-level', 'error'],
      ...['--listen-client-urls', urls(2379), '--advertise-client-urls', urls(2379)],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
      ...['--initial-cluster', `${this.#space.name}=${peer}`],
      ...['--cert-file', `${pki}/server.crt`, '--key-file', `${pki}/server.key`, '--client-cert-auth'],
      ...['--trusted-ca-file', `${pki}/ca.crt`, '--peer-cert-file', `${pki}/peer.crt`, '--peer-key-file', `${pki}/peer.key`],
      ...['--peer-client-cert-auth', '--peer-trusted-ca-file', `${pki}/ca.crt`],
    ];
  }

  #apiServer(): readonly string[] {
    const pki = join(this.#etc, 'pki');
    return [
      ...['--advertise-address', this.#space.address, '--secure-port', '6443', '--insecure-port', '0', '--allow-privileged'],
      ...['--service-cluster-ip-range', '10.96.0.0/12', '--authorization-mode', 'Node,RBAC', '--enable-bootstrap-token-auth'],
      ...['--etcd-servers', 'https://127.0.0.1:2379', '--etcd-cafile', `${pki}/etcd/ca.crt`],
      ...['--etcd-certfile', `${pki}/apiserver-etcd-client.crt`, '--etcd-keyfile', `${pki}/apiserver-etcd-client.key`],
      ...['--client-ca-file', `${pki}/ca.crt`, '--tls-cert-file', `${pki}/apiserver.crt`],
      ...['--tls-private-key-file', `${pki}/apiserver.key`, '--service-account-key-file', `${pki}/sa.pub`],
      ...['--service-account-signing-key-file', `${pki}/sa.key`, '--service-account-issuer', 'https://kubernetes.default.svc'],
      ...['--kubelet-client-certificate', `${pki}/apiserver-kubelet-client.crt`],
      ...['--kubelet-client-key', `${pki}/apiserver-kubelet-client.key`],
    ];
  }

  #run(program: string, before: readonly string[], args: readonly string[]): void {
    this.#processes.push(spawnIn(this.#space, [...before, program, ...args], { stdio: 'ignore' }));
  }

  async #ready(): Promise<void> {
    for (const end = Date.now() + READY_MS; ; await sleep(300)) {
      const said = await this.kubectl('get', '--raw', '/readyz').catch((error: unknown) => String(error));
      if (said === 'ok' && (await this.kubectl('get', 'ns', 'kube-system', '--ignore-not-found')) !== '') return;
      if (Date.now() > end) throw new Error(`the API server is not ready: ${said}`);
    }
  }

  async #within(argv: readonly string[]): Promise<string> {
    const { stdout } = await execute('ip', ['netns', 'exec', this.#space.name, ...argv], {
      env: { PATH: process.env.PATH, HOME: this.#etc },
    });
    return stdout;
  }
}

/** A chart repository over TLS, at the address of a namespace. */
export class ChartRepository implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  /** Serves `folder`, whose `server.crt` and `server.key` are its own. */
  static async start({ name, address }: NetworkSpace, folder: string): Promise<ChartRepository> {
    const script = new URL('chart-repository.mjs', import.meta.url).pathname;
    const child = spawn('ip', ['netns', 'exec', name, process.execPath, script, folder, address], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(child.stdout, 'data');
    return new ChartRepository(`https://${address}:${String(line).trim()}`, child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}
