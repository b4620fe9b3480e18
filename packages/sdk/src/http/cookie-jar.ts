/**
 * Cookies of one address, by which a load balancer finds the same node again. Browsers keep their own and show none, so
 * there this stays empty.
 */
export class CookieJar {
  readonly #values = new Map<string, string>();

  /** Keeps what an answer sets; a newer cookie replaces the older one of its name. */
  take(answer: Headers): void {
    for (const line of answer.getSetCookie()) {
      const [pair = "", ...attributes] = line.split(";").map((part) => part.trim());
      const [, name, value] = /^([^=]+)=(.*)$/.exec(pair) ?? [];
      if (name === undefined || value === undefined) continue;
      if (attributes.some(isOver)) this.#values.delete(name);
      else this.#values.set(name, value);
    }
  }

  /** Undefined when there is none. */
  get header(): string | undefined {
    if (this.#values.size === 0) return undefined;
    return [...this.#values].map(([name, value]) => `${name}=${value}`).join("; ");
  }
}

/** A cookie is taken back by setting one that has expired. Others last as long as the client: what they name is checked by whoever set them. */
function isOver(attribute: string): boolean {
  const [name = "", value = ""] = attribute.split("=");
  if (/^max-age$/i.test(name)) return Number(value) <= 0;
  return /^expires$/i.test(name) && Date.parse(value) <= Date.now();
}
