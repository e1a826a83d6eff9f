import { readFileSync } from 'node:fs';

/**
 * Milliseconds since the machine started, counting while it sleeps (CLOCK_BOOTTIME, proc_uptime(5)), to 10 ms. Without /proc the process's
 * own clock, which does not count sleep.
 */
export function bootTime(): number {
  try {
    return Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * 1_000;
  } catch {
    return performance.now();
  }
}
