const BEARER = /^Bearer +([^\s,]+)$/i;

/** What stands after "Bearer "; there is no other way to say who one is. */
export function credentialOf(request: Request): string | undefined {
  return BEARER.exec(request.headers.get("authorization") ?? "")?.[1];
}
