/** What every answer to a request carries. */
export interface RequestContext {
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The address of the caller, or of the proxy or node that forwarded the request; undefined inside the process. */
  readonly address?: string | undefined;
}

const SAFE_ID = /^[A-Za-z0-9._-]{1,128}$/;
const BEARER = /^Bearer +([^\s,]+)$/i;

/** The caller's own request id if it is safe in headers and logs, otherwise a new one. */
export function requestIdOf(request: Request, randomUuid: () => string): string {
  const given = request.headers.get("x-request-id");
  return given !== null && SAFE_ID.test(given) ? given : randomUuid();
}

/** The bearer token of the Authorization header. REST accepts no other credential. */
export function credentialOf(request: Request): string | undefined {
  return BEARER.exec(request.headers.get("authorization") ?? "")?.[1];
}
