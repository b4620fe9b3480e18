import type { SecretInjection } from "@sandpiper/protocol";

/** A secret for one sandbox and one destination. */
export interface UsableSecret {
  readonly placeholder: string;
  readonly value: string;
  readonly inject: SecretInjection;
}

export type HeaderPair = readonly [name: string, value: string];

/** The part of a request that can carry a secret. */
export interface RequestHead {
  /** With the query. */
  readonly path: string;
  readonly headers: readonly HeaderPair[];
}

/** Headers that decide where a message ends or who answers it: a secret must not change them. */
const FRAMING = /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive)$/i;
const BASIC = /^(basic +)([A-Za-z0-9+/=_-]+)$/i;
/** Shorter values could occur in a header by chance. */
const MIN_HIDDEN_CHARS = 8;

/** The request with the values of its secrets. */
export function injectSecrets(head: RequestHead, secrets: readonly UsableSecret[]): RequestHead {
  return secrets.reduce(injectOne, head);
}

function injectOne({ path, headers }: RequestHead, { placeholder, value, inject }: UsableSecret): RequestHead {
  if ("header" in inject) {
    const others = headers.filter(([name]) => name.toLowerCase() !== inject.header.toLowerCase());
    return { path, headers: [...others, [inject.header, inject.format.replaceAll("{}", () => value)]] };
  }
  const isReplaced = (place: "header" | "query" | "path") => inject.replaceIn.includes(place);
  const replace = (text: string) => text.replaceAll(placeholder, () => value);
  const replaceEncoded = (text: string) => text.replaceAll(placeholder, () => encodeURIComponent(value));
  const queryAt = path.includes("?") ? path.indexOf("?") : path.length;
  const [location, query] = [path.slice(0, queryAt), path.slice(queryAt)];
  return {
    path:
      (isReplaced("path") ? replaceEncoded(location) : location) +
      (isReplaced("query") ? replaceEncoded(query) : query),
    headers: isReplaced("header") ? headers.map((header) => replaceInHeader(header, replace)) : headers,
  };
}

function replaceInHeader([name, value]: HeaderPair, replace: (text: string) => string): HeaderPair {
  if (FRAMING.test(name)) return [name, value];
  const [, scheme, credentials] = BASIC.exec(value) ?? [];
  if (scheme === undefined || credentials === undefined) return [name, replace(value)];
  // Programs encode a user and a password, such as those of a Git remote.
  const decoded = Buffer.from(credentials, "base64").toString("latin1");
  const replaced = replace(decoded);
  return [name, replaced === decoded ? value : scheme + Buffer.from(replaced, "latin1").toString("base64")];
}

/** The headers of an answer, in which a server repeats no value of a secret: a redirect may contain the query. */
export function hideSecrets(headers: readonly HeaderPair[], secrets: readonly UsableSecret[]): readonly HeaderPair[] {
  const hidden = secrets.filter(({ value }) => value.length >= MIN_HIDDEN_CHARS);
  const hide = (text: string) =>
    hidden.reduce(
      (rest, { value, placeholder }) =>
        rest.replaceAll(value, placeholder).replaceAll(encodeURIComponent(value), placeholder),
      text,
    );
  return hidden.length === 0
    ? headers
    : headers.map(([name, value]) => (FRAMING.test(name) ? [name, value] : [name, hide(value)]));
}
