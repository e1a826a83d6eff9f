/** The terminal that a verb runs in: both standard input and standard output are it. */
export interface Terminal {
  size(): { readonly cols: number; readonly rows: number };
  /** Calls `listener` when the size has changed (SIGWINCH); returns what ends it. */
  onResize(listener: () => void): () => void;
  /** While it is raw, each key is input as it is pressed, Ctrl-C too, and nothing is echoed. */
  setRaw(raw: boolean): void;
}

export function processTerminal(): Terminal | undefined {
  const { stdin, stdout } = process;
  if (stdin.isTTY !== true || stdout.isTTY !== true) return undefined;
  return {
    size: () => ({ cols: stdout.columns, rows: stdout.rows }),
    onResize: (listener) => {
      stdout.on('resize', listener);
      return () => void stdout.off('resize', listener);
    },
    setRaw: (raw) => void stdin.setRawMode(raw),
  };
}
