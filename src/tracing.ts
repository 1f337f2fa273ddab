/*
 * Traces for OpenTelemetry: requests, commits of batches, reads of access, and calls to platforms and receivers. This
 * file is loaded only where a collector is configured. No span holds an id of a customer, a path, a query or a message.
 */

import { AsyncLocalStorage } from 'node:async_hooks'
import type { RequestListener } from 'node:http'
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import { factsOf } from './handlers/server.js'
import type { WriteBatch } from './ingest/commit.js'
import type { Post } from './sync/context.js'
import type { Platform } from './sync/platform.js'

/** A stop waits this long for the collector to take the last spans. */
const FLUSH_WITHIN_MS = 1_000

type Env = Readonly<Record<string, string | undefined>>

export interface TracingDeps {
  /** The sampler is read from it; the libraries read the rest of the standard variables from the process. */
  readonly env: Env
  readonly version: string
  readonly log: Logger
}

export type Tracing = ReturnType<typeof startTracing>

/** Sends spans in the background: a collector that is away costs them, and delays nothing. At most 2,048 wait. */
export function startTracing({ env, version, log }: TracingDeps) {
  const provider = new TracerProvider({
    sampler: samplerOf(env),
    resource: resourceFromAttributes({ 'service.name': 'latchkey', 'service.version': version }).merge(
      detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }),
    ),
    spanProcessors: [new BatchSpanProcessor({ exporter: reporting(new OTLPTraceExporter(), log) })],
  })
  const tracer = provider.getTracer('latchkey', version)
  const propagator = new W3CTraceContextPropagator()
  const requests = new AsyncLocalStorage<{ readonly context: Context; isOpen: boolean }>()
  const senders = new WeakMap<object, Context>()

  /** That of the request, until it is answered. Later work that it has set off, such as a loop, is on its own. */
  function parent(): Context {
    const request = requests.getStore()
    return request?.isOpen ? request.context : ROOT_CONTEXT
  }

  async function during<T>(
    name: string,
    options: SpanOptions,
    within: Context,
    work: (span: Span) => Promise<T>,
  ): Promise<T> {
    const span = tracer.startSpan(name, options, within)
    try {
      return await work(span)
    } catch (error) {
      span.setAttribute('error.type', kindOf(error)).setStatus({ code: SpanStatusCode.ERROR })
      throw error
    } finally {
      span.end()
    }
  }

  return {
    /** Makes each request a span, which goes on with the caller's trace. */
    ofRequests(handle: RequestListener): RequestListener {
      return (req, res) => {
        const { method = '' } = req
        const from = propagator.extract(ROOT_CONTEXT, req.headers, defaultTextMapGetter)
        const facts = factsOf(req)
        const attributes = {
          'http.request.method': method,
          'url.scheme': 'http',
          'latchkey.request_id': facts.id,
        }
        const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, from)
        const request = { context: trace.setSpan(from, span), isOpen: true }
        if (span.isRecording()) facts.traceId = span.spanContext().traceId
        res.on('close', () => {
          request.isOpen = false
          const { route, endpoint } = facts
          if (route !== null) span.updateName(`${method} ${route}`).setAttribute('http.route', route)
          if (endpoint !== null) span.setAttribute('latchkey.endpoint', endpoint)
          noteStatus(span, res.statusCode, 500)
          span.end()
        })
        requests.run(request, () => handle(req, res))
      }
    },
    /** Remembers the request of each delivery, for the commit, and takes its work out of the request. */
    ofDeliveries<Delivery extends object, Receipt>(ingest: (delivery: Delivery) => Promise<Receipt>) {
      return (delivery: Delivery): Promise<Receipt> => {
        const from = parent()
        if (trace.getSpan(from)?.isRecording()) senders.set(delivery, from)
        return requests.exit(() => ingest(delivery))
      }
    },
    /** Makes each commit a span: within the trace of the first delivery, and linked to the others. */
    ofBatches(write: WriteBatch): WriteBatch {
      return (deliveries) => {
        const [first, ...others] = new Set(deliveries.flatMap((one) => senders.get(one) ?? []))
        if (first === undefined) return write(deliveries)
        const options = {
          attributes: { 'latchkey.batch.size': deliveries.length },
          links: others.map((one) => ({ context: trace.getSpanContext(one) as SpanContext })),
        }
        return during('commit', options, first, () => write(deliveries))
      }
    },
    ofReads<Query, Answer>(name: string, read: (query: Query) => Promise<Answer>) {
      return (query: Query): Promise<Answer> => during(name, {}, parent(), () => read(query))
    },
    /** Makes each call of an account's membership a span. The call itself carries nothing more. */
    ofPlatform(platform: Platform): Platform {
      const { name } = platform
      const options = { kind: SpanKind.CLIENT, attributes: { 'peer.service': name } }
      const call = <T>(what: string, work: () => Promise<T>) =>
        during(`${name} ${what}`, options, parent(), work)
      return {
        ...platform,
        observe: (...account) => call('observe', () => platform.observe(...account)),
        give: (...account) => call('give', () => platform.give(...account)),
        take: (...account) => call('take', () => platform.take(...account)),
      }
    },
    /** As `fetch`, with the trace in a header. */
    post: ((address, options) => {
      const attributes = {
        'http.request.method': 'POST',
        'server.address': address.hostname,
        'server.port': Number(address.port) || (address.protocol === 'http:' ? 80 : 443),
      }
      const within = parent()
      return during('POST', { kind: SpanKind.CLIENT, attributes }, within, async (span) => {
        const headers = { ...options.headers }
        propagator.inject(trace.setSpan(within, span), headers, defaultTextMapSetter)
        const response = await fetch(address, { ...options, headers })
        noteStatus(span, response.status, 400)
        return response
      })
    }) satisfies Post as Post,
    /** Sends what is left, within a second. */
    async stop(): Promise<void> {
      const { promise: late, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, FLUSH_WITHIN_MS)
      // What failed was logged.
      await Promise.race([provider.shutdown().catch(() => {}), late])
      clearTimeout(timer)
    },
  }
}

function noteStatus(span: Span, status: number, failedFrom: number): void {
  span.setAttribute('http.response.status_code', status)
  if (status < failedFrom) return
  span.setAttribute('error.type', String(status)).setStatus({ code: SpanStatusCode.ERROR })
}

/** Never the message, which may hold an id. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error ? String(error.code) : error.name
}

/** Logs once that spans are lost, and once that they arrive again. */
function reporting(exporter: SpanExporter, log: Logger): SpanExporter {
  let isFailing = false
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const hasFailed = result.code === ExportResultCode.FAILED
        if (hasFailed && !isFailing) {
          const why = result.error?.message || result.error?.name
          log.warn({ why }, 'traces do not arrive: see OTEL_EXPORTER_OTLP_ENDPOINT and the collector')
        } else if (!hasFailed && isFailing) log.info('traces arrive again')
        isFailing = hasFailed
        done(result)
      }),
    shutdown: () => exporter.shutdown(),
  }
}

/** As `OTEL_TRACES_SAMPLER` says; by default every trace whose caller does not say that it is not sampled. */
function samplerOf({ OTEL_TRACES_SAMPLER: name = '', OTEL_TRACES_SAMPLER_ARG: ratio = '1' }: Env): Sampler {
  const kind = name.replace('parentbased_', '')
  const root =
    kind === 'always_off'
      ? new AlwaysOffSampler()
      : kind === 'traceidratio'
        ? new TraceIdRatioBasedSampler(Number(ratio))
        : new AlwaysOnSampler()
  return name === kind && name !== '' ? root : new ParentBasedSampler({ root })
}
