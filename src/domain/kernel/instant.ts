const DAY_MS = 24 * 60 * 60 * 1000;
/** Days from 0000-03-01 to 1970-01-01 in the Gregorian calendar. */
const EPOCH_DAYS = 719_468;
/** Days in 400 years. */
const ERA_DAYS = 146_097;

/** `2026-01-31T12:00:00Z` of milliseconds since the Unix epoch, rounded down to the second. */
export function formatInstant(ms: number): string {
  const days = Math.floor(ms / DAY_MS);
  const seconds = Math.floor((ms - days * DAY_MS) / 1_000);
  const clock = [seconds / 3_600, (seconds / 60) % 60, seconds % 60].map(twoDigits).join(':');
  return `${formatDay(days)}T${clock}Z`;
}

/** Years are counted from March, so that the day that leap years have more is their last one. */
function formatDay(daysSinceEpoch: number): string {
  const days = daysSinceEpoch + EPOCH_DAYS;
  const era = Math.floor(days / ERA_DAYS);
  const dayOfEra = days - era * ERA_DAYS;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const fromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * fromMarch + 2) / 5) + 1;
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return `${String(year).padStart(4, '0')}-${twoDigits(month)}-${twoDigits(day)}`;
}

function twoDigits(value: number): string {
  return String(Math.floor(value)).padStart(2, '0');
}

/** `2 h`, `40 min`, `3 days`: of a span, rounded down, for sentences. */
export function roughly(ms: number): string {
  const size = Math.abs(ms);
  if (size >= 2 * DAY_MS) return `${Math.floor(size / DAY_MS)} days`;
  if (size >= 2 * 3_600_000) return `${Math.floor(size / 3_600_000)} h`;
  if (size >= 2 * 60_000) return `${Math.floor(size / 60_000)} min`;
  return `${Math.floor(size / 1_000)} s`;
}
