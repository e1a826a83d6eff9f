import { resolve } from 'node:path';
import { adminGrades } from '../../domain/certificate/names.js';
import { durationMs } from '../../domain/kernel/duration.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { printable } from '../../domain/kernel/printable.js';
import { makeAdminFolder, removeAdminPair, writeAdminPair } from '../certificate/admin-pair-folder.js';
import { checkedPair } from '../certificate/pair-reader.js';
import { X509KeyMaker } from '../certificate/x509-key-maker.js';
import { exists } from '../files/durable-file.js';
import type { AdminCertificate } from '../generated/holdfast/admin/v1/certificates.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, UsageError, withClient } from './context.js';
import { age, structured, table } from './output.js';

export interface CreateCertificateOptions extends GlobalOptions {
  readonly role: string;
  readonly ttl: string;
  readonly out: string;
}

/** The key is made here and goes nowhere; what there is of a folder when the server refuses is taken away again. */
export async function createCertificate(context: CliContext, name: string, options: CreateCertificateOptions): Promise<ExitCode> {
  if (!adminGrades.some((grade) => grade === options.role)) {
    throw new UsageError(`expected one of ${adminGrades.join(', ')} after --role, found ${options.role}`);
  }
  const ttlMs = BigInt(lifetimeMs(options.ttl));
  const folder = resolve(options.out);
  if (await exists(folder)) throw new UsageError(`${folder} is there already`);
  await makeAdminFolder(folder);
  const facts = await intoFolder(context, folder, { name, role: options.role, ttlMs }, options).catch(async (error: unknown) => {
    await removeAdminPair(folder);
    throw error;
  });
  const { console } = context;
  if (options.output !== 'table') console.out(structured(options.output, { folder, ...shownOf(facts) }));
  else {
    console.out(`${printable(`${facts.role} ${facts.name}: ${folder}`)}\n`);
    console.err(`serial ${facts.serial}; whoever has admin.key is ${facts.role} until ${iso(facts.expiresAtMs)}\n`);
  }
  return exitCodes.done;
}

async function intoFolder(
  context: CliContext,
  folder: string,
  request: { readonly name: string; readonly role: string; readonly ttlMs: bigint },
  options: GlobalOptions,
): Promise<AdminCertificate> {
  const { privateKey, csr } = await new X509KeyMaker().makeRequest(context);
  const { certificate, ca, facts } = await withClient(context, options, (client) =>
    client.createAdminCertificate({ ...request, csr: Buffer.from(csr) }, context),
  );
  if (facts === undefined) throw new AgentError('admin.failed', { problem: 'the daemon answered without a certificate' });
  await writeAdminPair(folder, checkedPair({ certificate, privateKey, ca }), context);
  return facts;
}

export async function listCertificates(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const { certificates } = await withClient(context, options, (client) => client.listAdminCertificates(context));
  const { console } = context;
  if (options.output !== 'table') console.out(structured(options.output, { certificates: certificates.map(shownOf) }));
  else if (certificates.length === 0) console.err('nobody has a certificate; `holdfast cert create` makes one\n');
  else console.out(table(['NAME', 'ROLE', 'SERIAL', 'AGE', 'STATE', 'MADE BY'], certificates.map(rowOf)));
  return exitCodes.done;
}

/** `90d`, or what other durations are. @throws UsageError */
function lifetimeMs(text: string): number {
  const days = /^([1-9]\d{0,3})d$/.exec(text)?.[1];
  const ms = days === undefined ? durationMs(text) : Number(days) * 24 * 60 * 60_000;
  if (ms !== undefined && ms > 0) return ms;
  throw new UsageError(`expected a lifetime such as 90d, 12h or 30m after --ttl, found ${text}`);
}

function rowOf({ name, role, serial, issuedAtMs, expiresAtMs, madeBy, revoked }: AdminCertificate): readonly string[] {
  const left = Number(expiresAtMs) - Date.now();
  const unrevoked = left > 0 ? `expires in ${age(left)}` : 'expired';
  const state = revoked === '' ? unrevoked : `revoked: ${revoked}`;
  return [name, role, serial, age(Date.now() - Number(issuedAtMs)), state, madeBy];
}

function shownOf({ issuedAtMs, expiresAtMs, ...facts }: AdminCertificate) {
  return { ...facts, issuedAt: iso(issuedAtMs), expiresAt: iso(expiresAtMs) };
}

function iso(ms: bigint): string {
  return new Date(Number(ms)).toISOString();
}
