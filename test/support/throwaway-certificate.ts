import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface ThrowawayCertificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

/** Signed by itself, for these names (`DNS:web.test`, `IP:127.0.0.1`), from now on for `days` days; files are left in `folder`. */
export function throwawayCertificate(folder: string, names: readonly string[], days = 2): ThrowawayCertificate {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', String(days)];
  const content = ['-subj', '/CN=throwaway', '-addext', `subjectAltName=${names.join(',')}`];
  execFileSync('openssl', ['req', ...kind, ...content, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}

/** Not every machine has the program that makes them. */
export function canMakeCertificates(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
