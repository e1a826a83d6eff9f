import type { CallOptions } from '../call-options.js';
import type { ManifestDocument, ManifestProblem } from '../driving/resources.js';

/** Documents that were read together. */
export interface Manifests {
  readonly documents: readonly ManifestDocument[];
  /** `hello.yaml:12: document 1, spec.ports[0].port: expected …, found …`; the line is that of the path, or of what should hold it. */
  describe(problem: ManifestProblem): string;
}

/** Files with manifests. */
export interface ManifestSource {
  /** The same for the same files, however they are named. */
  readonly name: string;
  /** @throws AgentError `resource.invalid` naming file, line and what was expected */
  read(options: CallOptions): Promise<Manifests>;
  /** One item after the files have changed and are quiet again, until abort. */
  changes(options: CallOptions): AsyncIterable<void>;
}
