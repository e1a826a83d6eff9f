import type { Config } from '../domain/config/model.js';
import type { InstructionPolicy } from '../domain/instruction/policy.js';

/** What the configuration lets a control plane ask for. */
export function policyOf(config: Config): InstructionPolicy {
  return {
    allow: config.instructionsAllow,
    deny: config.instructionsDeny,
    scripts: { allow: config.scriptsAllow, deny: config.scriptsDeny },
    kubectl: { allow: config.kubectlAllow, deny: config.kubectlDeny },
  };
}
