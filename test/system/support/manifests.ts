export interface ServiceOptions {
  readonly name: string;
  readonly port?: number;
  readonly algorithm?: 'random' | 'round-robin';
  readonly drain?: string;
  readonly endpoints: readonly { readonly port: number; readonly weight?: number }[];
}

/** A service on loopback, as YAML. */
export function serviceManifest({ name, port = 18_080, algorithm = 'random', drain = '30s', endpoints }: ServiceOptions): string {
  const list = endpoints
    .map(({ port: own, weight = 1 }) => `    - { address: 127.0.0.1, port: ${own}, weight: ${weight} }\n`)
    .join('');
  return `apiVersion: holdfast/v1
kind: Service
metadata: { name: ${name} }
spec:
  ports: [{ name: tcp, port: ${port} }]
  balance: { algorithm: ${algorithm} }
  drain: { timeout: ${drain} }
  endpoints:${endpoints.length === 0 ? ' []' : `\n${list}`}
`;
}

export function documents(texts: readonly string[]): string {
  return texts.join('---\n');
}
