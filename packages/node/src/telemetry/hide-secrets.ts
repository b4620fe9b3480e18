const HIDDEN = "[hidden]";
const MAX_DEPTH = 6;

/** Names of fields that hold a secret, at any depth. */
const secretNames =
  /^(authorization|proxy-authorization|cookie|set-cookie|key|api-?key|.*(secret|token|password|credential|secret[-_]?access[-_]?key))$/i;
const credentials = /\b(spk_[0-9a-f]+|spt_[0-9a-f-]+|whs)_[A-Za-z0-9_-]{16,}/g;

/** Replaces secrets in log fields. Keeps the names of environment variables and drops their values. */
export function withoutSecrets(fields: object, depth = 0): object {
  if (Array.isArray(fields)) return fields.map((item) => hiddenInside(item, depth));
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (secretNames.test(name) && typeof value === "string") return [name, HIDDEN];
      if (name === "env" && isPlain(value)) return [name, Object.keys(value)];
      return [name, hiddenInside(value, depth)];
    }),
  );
}

/** Cuts every credential in a line down to its public part. */
export function withoutCredentials(line: string): string {
  return line.replaceAll(credentials, `$1_${HIDDEN}`);
}

function hiddenInside(value: unknown, depth: number): unknown {
  if (!Array.isArray(value) && !isPlain(value)) return value;
  return depth >= MAX_DEPTH ? HIDDEN : withoutSecrets(value, depth + 1);
}

function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
