import { SandboxError } from "@sandpiper/protocol";

export type PathParameters = Readonly<Record<string, string>>;

type QueryValue = string | number | boolean | undefined;
export type Query = Readonly<Record<string, QueryValue | readonly string[]>>;

/** The URL of an operation; undefined values are left out of the query. */
export function requestUrl(
  baseUrl: string,
  template: string,
  { path = {}, query = {} }: { readonly path?: PathParameters | undefined; readonly query?: Query | undefined },
): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, path[name] ?? ""));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const one of value as readonly string[]) search.append(name, one);
    else if (value !== undefined) search.append(name, String(value));
  }
  return `${baseUrl}${filled}${search.size === 0 ? "" : `?${search}`}`;
}

/** Segments of dots would be resolved by fetch, and the request would reach another path. */
function segment(name: string, value: string): string {
  if (!/^\.{0,2}$/.test(value)) return encodeURIComponent(value);
  throw new SandboxError("invalid_id", {
    message: `${JSON.stringify(value)} is not a valid ${name}`,
  });
}
