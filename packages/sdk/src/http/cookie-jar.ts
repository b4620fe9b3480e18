/**
 * Cookies of one address, by which a load balancer selects the same node again. In browsers it stays empty, because they
 * keep cookies themselves.
 */
export class CookieJar {
  readonly #values = new Map<string, string>();

  /** Stores the cookies of an answer; a newer cookie replaces one of the same name. */
  take(answer: Pick<Headers, "getSetCookie">): void {
    for (const line of answer.getSetCookie()) {
      const [pair = "", ...attributes] = line.split(";").map((part) => part.trim());
      const [, name, value] = /^([^=]+)=(.*)$/.exec(pair) ?? [];
      if (name === undefined || value === undefined) continue;
      if (attributes.some(isExpired)) this.#values.delete(name);
      else this.#values.set(name, value);
    }
  }

  /** Undefined without cookies. */
  get header(): string | undefined {
    if (this.#values.size === 0) return undefined;
    return [...this.#values].map(([name, value]) => `${name}=${value}`).join("; ");
  }
}

/** An expired cookie deletes the stored one. Others last as long as the client; the server checks what they name. */
function isExpired(attribute: string): boolean {
  const [name = "", value = ""] = attribute.split("=");
  if (/^max-age$/i.test(name)) return Number(value) <= 0;
  return /^expires$/i.test(name) && Date.parse(value) <= Date.now();
}
