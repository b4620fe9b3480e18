const HTTPS_PORT = 443;
const HTTP_PORT = 80;

export interface Destination {
  /** In lower-case ASCII. */
  readonly name: string;
  readonly port: number;
}

/** Whether a pattern of a secret, such as `api.example.com`, `*.example.com` or `example.com:8443`, covers the destination. */
export function coversHost(
  pattern: string,
  { name, port }: Destination,
  { isSecure }: { readonly isSecure: boolean },
): boolean {
  const [host = "", ownPort] = pattern.split(":");
  const expectedPort = ownPort === undefined ? (isSecure ? HTTPS_PORT : HTTP_PORT) : Number(ownPort);
  if (port !== expectedPort) return false;
  return host.startsWith("*.") ? name.endsWith(host.slice(1)) && name.length >= host.length : name === host;
}
