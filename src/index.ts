/*
 * The package's own entry: the daemon in an app's process. It handles no signal, sets no exit code, and never ends the
 * process.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { resolve } from 'node:path'
import { loadConfig } from './config/load.js'
import { startConfigured } from './daemon/configured.js'
import { LatchkeyError } from './errors.js'
import { pathOf } from './handlers/query.js'
import { answerFailure } from './handlers/send.js'
import { packageVersion } from './package-file.js'

export interface StartOptions {
  /**
   * The path of the config file, or its content as an object. Relative paths in a file are relative to it, those in an
   * object to the current folder.
   */
  readonly config: string | object
  /** Takes each line of the log, in JSON, with its line break; by default standard output. `log.level` is the level. */
  readonly log?: { write(line: string): void }
}

/** A daemon that runs in this process. */
export interface Latchkey {
  /** The address of its API, such as `http://127.0.0.1:4680`. */
  readonly url: string
  /** The main address, unless the config gives them their own. */
  readonly webhooksUrl: string
  readonly metricsUrl: string
  /** Takes a delivery for an endpoint from another server: see `createReceiver`. */
  receive(req: IncomingMessage, res: ServerResponse, endpoint: string): void
  /** Resolves with the error once the store can't be trusted any more: close it, and look at the disk. */
  readonly failure: Promise<unknown>
  /** Stops accepting, answers requests in progress, and closes the store. May be called twice. */
  close(): Promise<void>
}

/**
 * Starts the whole daemon. If it rejects, it leaves nothing open.
 * @throws an error with a stable `code`: `config_missing`, `config_invalid` with every problem in `issues`,
 * `store_in_use`, `schema_too_new`; the system's own errors pass through, such as `EADDRINUSE`
 */
export async function startDaemon({ config, log: logTo }: StartOptions): Promise<Latchkey> {
  const { daemon, log } = await startConfigured({
    load: () =>
      typeof config === 'string'
        ? loadConfig({ path: config, env: process.env })
        : loadConfig({ path: resolve('config.json'), value: config, env: process.env }),
    logTo,
    clock: Date.now,
    version: packageVersion(),
  })
  void daemon.failure.then((error) => log.fatal({ err: error }, 'the store has failed'))
  const silent = log.child({}, { level: 'silent' })
  let isLogged = false
  return {
    url: daemon.url,
    webhooksUrl: daemon.webhooksUrl,
    metricsUrl: daemon.metricsUrl,
    receive(req, res, endpoint) {
      if (!wasRead(req)) return daemon.receive(req, res, endpoint)
      // Once: every delivery fails the same way, and anybody can send one.
      if (!isLogged) log.error({ code: BODY_ALREADY_READ.code, endpoint }, BODY_ALREADY_READ.message)
      isLogged = true
      answerFailure(res, BODY_ALREADY_READ, silent)
    },
    failure: daemon.failure,
    close: daemon.stop,
  }
}

const BODY_ALREADY_READ = new LatchkeyError(
  'body_already_read',
  'A body parser has read the delivery, so its signature cannot be checked: mount the receiver before express.json() ' +
    'and every other body parser.',
)

function wasRead(req: IncomingMessage & { readonly body?: unknown }): boolean {
  // With an encoding, its chunks are text: bytes that are not UTF-8 are lost.
  return req.readableDidRead || req.readableEncoding !== null || req.body !== undefined
}

export interface ReceiverOptions {
  /** The name of the endpoint in the config; by default the last part of the path, as in `/webhooks/live`. */
  readonly endpoint?: string
}

/**
 * Takes deliveries in by the app's own server, with the daemon's checks, limits and answers. For Express, to mount before
 * any body parser, and for node:http.
 */
export function createReceiver(
  latchkey: Latchkey,
  { endpoint }: ReceiverOptions = {},
): (req: IncomingMessage & { readonly originalUrl?: string }, res: ServerResponse) => void {
  return (req, res) => {
    const { originalUrl, url = '' } = req
    const path = pathOf(originalUrl ?? url).replace(/\/$/, '')
    latchkey.receive(req, res, endpoint ?? path.slice(path.lastIndexOf('/') + 1))
  }
}
