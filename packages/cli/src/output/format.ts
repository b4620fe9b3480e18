const SECOND_MS = 1000;
const units = [
  ["d", 24 * 3600 * SECOND_MS],
  ["h", 3600 * SECOND_MS],
  ["m", 60 * SECOND_MS],
  ["s", SECOND_MS],
] as const;

/** A duration in its largest unit, such as `3h`. */
export function shortDuration(durationMs: number): string {
  for (const [name, sizeMs] of units) if (durationMs >= sizeMs) return `${Math.floor(durationMs / sizeMs)}${name}`;
  return "0s";
}

/** The time since an instant. */
export function age(instant: string, nowMs = Date.now()): string {
  return shortDuration(nowMs - Date.parse(instant));
}

/** The time until an instant; empty without one. */
export function timeUntil(instant: string | null, nowMs = Date.now()): string {
  return instant === null ? "" : shortDuration(Date.parse(instant) - nowMs);
}

const sizes = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** A number of bytes with three digits, such as `1.25 MiB`. */
export function shortBytes(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1000 && unit < sizes.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || amount >= 100 ? 0 : amount >= 10 ? 1 : 2;
  return `${amount.toFixed(digits)} ${sizes[unit]}`;
}

/** The beginning of an ID, enough for a person to name it. */
export function shortId(id: string): string {
  return id.slice(0, 8);
}

/** Text from a sandbox or a label, without characters that a terminal would act on. */
export function plainText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it removes
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
