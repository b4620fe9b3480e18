import { createHmac } from "node:crypto";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { isPublicAddress, publicLookup } from "../network/public-address.ts";

export interface WebhookRequest {
  readonly url: string;
  readonly secret: string;
  readonly eventId: number;
  readonly body: string;
  readonly sentAt: Date;
  readonly signal: AbortSignal;
  /** Allows this machine and private networks. */
  readonly allowPrivate: boolean;
}

/** Lets the receiver check the sender. The signature covers the time, so that a request cannot be replayed later. */
export function webhookSignature(secret: string, { timestamp, body }: { timestamp: number; body: string }): string {
  return `v1=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`;
}

/** False for a private address. A name is checked again when it is resolved. */
export function canBePublic(url: URL): boolean {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(host) !== 0) return isPublicAddress(host);
  return !/(^|\.)localhost\.?$/i.test(host);
}

/** Sends one event once. Follows no redirects, because they could lead to a private address. */
export function postWebhook(options: WebhookRequest): Promise<void> {
  const { url: text, secret, eventId, body, sentAt, signal, allowPrivate } = options;
  const url = new URL(text);
  if (!allowPrivate && !canBePublic(url)) return Promise.reject(new Error(`${url.hostname} is not a public address`));
  const timestamp = Math.floor(sentAt.getTime() / 1000);
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const request = send(url, {
      method: "POST",
      signal,
      agent: false,
      ...(allowPrivate ? {} : { lookup: publicLookup() }),
      headers: {
        "Content-Type": "application/json",
        "Content-Length": Buffer.byteLength(body),
        "User-Agent": "Sandpiper",
        "Sandpiper-Event-Id": eventId,
        "Sandpiper-Timestamp": timestamp,
        "Sandpiper-Signature": webhookSignature(secret, { timestamp, body }),
      },
    });
    request.on("error", reject);
    request.on("response", (response) => {
      const status = response.statusCode ?? 0;
      // The body is not needed, and could be endless.
      response.destroy();
      if (status >= 200 && status < 300) resolve();
      else reject(new Error(`the receiver answered with status ${status}`));
    });
    request.end(body);
  });
}
