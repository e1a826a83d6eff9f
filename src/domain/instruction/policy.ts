import { type InstructionType, instructionTypes } from './model.js';

/** What a policy may name: every instruction, and interactive sessions by the frame that opens one. */
export const policyTypes = [...instructionTypes, 'OPEN_STREAM'] as const;
export type PolicyType = (typeof policyTypes)[number];

/** What this node's owner lets a control plane ask for. A pattern may end in `*`. */
export interface InstructionPolicy {
  /** Undefined: all but the denied ones. */
  readonly allow: readonly PolicyType[] | undefined;
  readonly deny: readonly PolicyType[];
  readonly scripts: NamePolicy;
  /** Of verbs of kubectl, `get` or `rollout status`. */
  readonly kubectl: NamePolicy;
}

export interface NamePolicy {
  readonly allow: readonly string[] | undefined;
  readonly deny: readonly string[];
}

/** What an instruction is about, where a policy may name that. */
export interface PolicySubject {
  readonly kind: 'script' | 'kubectl';
  readonly name: string;
}

/** Everything but the one that replaces the machine's system. */
export const USUAL_POLICY: InstructionPolicy = {
  allow: undefined,
  deny: ['REINSTALL_NODE'],
  scripts: { allow: undefined, deny: [] },
  kubectl: { allow: undefined, deny: [] },
};

export interface Verdict {
  readonly allowed: boolean;
  /** The setting that decided, as its path in the configuration. */
  readonly rule: string;
}

export const DEFAULT_RULE = 'default';

/** Denials go before permissions. */
export function judgeInstruction(policy: InstructionPolicy, type: PolicyType, subject: PolicySubject | undefined): Verdict {
  if (policy.deny.includes(type)) return { allowed: false, rule: `instructions.deny: ${type}` };
  if (policy.allow !== undefined && !policy.allow.includes(type))
    return { allowed: false, rule: `instructions.allow does not name ${type}` };
  return subject === undefined ? byType(policy, type) : judgeSubject(policy, type, subject);
}

function judgeSubject(policy: InstructionPolicy, type: PolicyType, { kind, name }: PolicySubject): Verdict {
  const setting = kind === 'script' ? 'scripts' : 'kubectl';
  const { allow, deny } = policy[setting];
  const denied = deny.find((pattern) => matches(pattern, name));
  if (denied !== undefined) return { allowed: false, rule: `instructions.${setting}.deny: ${denied}` };
  if (allow === undefined) return byType(policy, type);
  const allowed = allow.find((pattern) => matches(pattern, name));
  if (allowed === undefined) return { allowed: false, rule: `instructions.${setting}.allow does not name ${name}` };
  return { allowed: true, rule: `instructions.${setting}.allow: ${allowed}` };
}

function byType({ allow }: InstructionPolicy, type: PolicyType): Verdict {
  return { allowed: true, rule: allow === undefined ? DEFAULT_RULE : `instructions.allow: ${type}` };
}

function matches(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

export function isInstructionType(text: unknown): text is InstructionType {
  return instructionTypes.some((type) => type === text);
}
