import { formatHead, parseHead } from '../../domain/audit/head.js';
import { type AuditVerification, verifyAuditLog } from '../audit/verify-audit-log.js';
import { type CliContext, type ExitCode, exitCodes, UsageError } from './context.js';
import { type OutputFormat, structured, table } from './output.js';

export interface VerifyOptions {
  readonly head: string | undefined;
  readonly output: OutputFormat;
}

/** Code 1 when a line is not as it was written, when lines are gone, or when there is no log at all. */
export async function verifyAudit(context: CliContext, file: string, { head, output }: VerifyOptions): Promise<ExitCode> {
  const { console } = context;
  const known = head === undefined ? undefined : parseHead(head);
  if (head !== undefined && known === undefined) {
    throw new UsageError(`expected <sequence>:<digest, 64 hex digits> after --head, found ${head}`);
  }
  const found = await verifyAuditLog(file, known, context);
  const isWhole = found.break === undefined && found.files > 0;
  if (output !== 'table') console.out(structured(output, shownOf(file, found, isWhole)));
  else if (found.files === 0) console.err(`there is no audit log ${file}\n`);
  else console.out(formatVerification(file, found, head));
  return isWhole ? exitCodes.done : exitCodes.failed;
}

function formatVerification(file: string, found: AuditVerification, asked: string | undefined): string {
  const { files, lines, first, head, anchor, recovered, knownMet, unfinished } = found;
  const pruned = anchor === undefined ? '' : `, those before were pruned up to ${anchor.sequence}`;
  return table(
    ['AUDIT LOG', file],
    [
      ['state', stateOf(found)],
      ['lines', `${lines} in ${files} files, from ${first ?? '-'}${pruned}`],
      ['head', head === undefined ? '-' : formatHead(head)],
      ...(asked === undefined || found.break !== undefined ? [] : [['known head', knownMet ? 'is in it' : 'was pruned']]),
      ...(recovered === 0 ? [] : [['recovered', `${recovered} torn ends, each set aside beside the log`]]),
      ...(unfinished === 0 ? [] : [['unfinished', `${unfinished} bytes: a line that is being written, or was torn`]]),
    ],
  );
}

function stateOf({ break: broken }: AuditVerification): string {
  if (broken === undefined) return 'whole';
  const place = broken.number === 0 ? broken.file : `${broken.file}:${broken.number}`;
  return `broken at ${place || 'its beginning'}: ${broken.problem}`;
}

function shownOf(file: string, { head, anchor, ...found }: AuditVerification, isWhole: boolean) {
  const text = (one: typeof head) => (one === undefined ? undefined : formatHead(one));
  return { file, whole: isWhole, ...found, head: text(head), anchor: text(anchor) };
}
