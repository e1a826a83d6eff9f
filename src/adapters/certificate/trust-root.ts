import { hash, X509Certificate } from 'node:crypto';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import { readTextFile } from '../files/text-file.js';

const MAX_BYTES = 256 * 1024;

export interface TrustRootFile {
  readonly path: string;
  /** Hex SHA-256 over the file's bytes, in any spelling; without it whatever certificate stands there is trusted. */
  readonly sha256?: string | undefined;
}

/**
 * PEM of the root. It is often downloaded, and what comes then is now and then the error page of a proxy.
 * @throws AgentError `certificate.root_invalid`
 */
export async function readTrustRoot({ path, sha256 }: TrustRootFile, options: CallOptions): Promise<string> {
  const refuse = (problem: string, cause?: unknown) =>
    new AgentError('certificate.root_invalid', { problem: `${path} ${problem}` }, { cause });
  const file = await readTextFile(path, MAX_BYTES, options);
  if (file.found === 'nothing') throw refuse('is not there');
  if (file.found === 'unusable') throw refuse(file.problem, file.cause);
  const found = hash('sha256', file.text, 'hex');
  const wanted = sha256?.replaceAll(/[\s:]/g, '').toLowerCase();
  if (wanted !== undefined && wanted !== found)
    throw refuse(`is not the one that was pinned: its SHA-256 is ${found}, not ${wanted}`);
  try {
    if (new X509Certificate(file.text).ca) return file.text;
  } catch (cause) {
    throw refuse(/^\s*<(!doctype|html)/i.test(file.text) ? 'is a web page, no certificate' : 'is no certificate in PEM', cause);
  }
  throw refuse('is the certificate of no authority');
}
