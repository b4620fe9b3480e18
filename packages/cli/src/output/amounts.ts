const SECOND_MS = 1000;
const units = [
  ["d", 24 * 3600 * SECOND_MS],
  ["h", 3600 * SECOND_MS],
  ["m", 60 * SECOND_MS],
  ["s", SECOND_MS],
] as const;

/** A length of time in its largest unit, such as `3h`. */
export function shortDuration(durationMs: number): string {
  for (const [name, sizeMs] of units) if (durationMs >= sizeMs) return `${Math.floor(durationMs / sizeMs)}${name}`;
  return "0s";
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

/** The beginning of an id, enough for a person to name it. */
export function shortId(id: string): string {
  return id.slice(0, 8);
}
