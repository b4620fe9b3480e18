/** Where an engine is, and who said so. */
export interface Endpoint {
  /** `unix:`, `http:` or `https:`. */
  readonly url: URL;
  /** Who named it, for whoever has to mend it: `DOCKER_HOST`, `the context "build"`, … */
  readonly origin: string;
  readonly tls: EndpointTls | undefined;
}

/** In PEM. */
export interface EndpointTls {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** False only where a context says that the engine's certificate is not to be checked. */
  readonly isVerified: boolean;
}
