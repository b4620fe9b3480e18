/** What every answer to a request carries. */
export interface RequestContext {
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string>>;
}

const SANE = /^[A-Za-z0-9._-]{1,128}$/;

/** The caller's own request id if it is safe in headers and logs, otherwise a new one. */
export function requestIdOf(request: Request, randomUuid: () => string): string {
  const given = request.headers.get("x-request-id");
  return given !== null && SANE.test(given) ? given : randomUuid();
}
