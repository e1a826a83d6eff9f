/** Where scripts are; without a trailing slash. Undefined: none is configured. */
export interface ScriptSources {
  readonly installer: string | undefined;
  readonly conductor: string | undefined;
}

/**
 * `/t/...` is a path of the conductor, anything else a name that the installer renders with its parameters. Undefined when that server is
 * not configured.
 * @param params base64 of the parameters' JSON
 */
export function scriptUrl({ installer, conductor }: ScriptSources, script: string, params: string): string | undefined {
  if (script.startsWith('/t/')) return conductor === undefined ? undefined : `${conductor}${script}`;
  if (installer === undefined) return undefined;
  return `${installer}/scripts?t=${encodeURIComponent(script)}&i=${encodeURIComponent(params)}`;
}
