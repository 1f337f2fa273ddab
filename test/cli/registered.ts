import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '../../src/config/load.js'
import { KEY, type Service, startService } from '../sandbox/service.js'
import { answerOf, configuredFolder } from '../world.js'

export const NOW = Date.parse('2026-03-01T12:00:00Z')
export const URL_HERE = 'http://127.0.0.1:4680/webhooks/sandbox'
export const REGISTER = `endpoints register --url ${URL_HERE}`

export const apiOf = (url: string, apiKey = KEY) => ({ provider: { sandbox: { baseUrl: url, apiKey } } })

export const textIn = (folder: string) => readFileSync(join(folder, 'config.json'), 'utf8')
export const endpointsIn = (folder: string) => JSON.parse(textIn(folder)).endpoints
export const secretsIn = (folder: string, name = 'sandbox') =>
  loadConfig({ path: join(folder, 'config.json'), env: {} }).config.endpoints.find((one) => one.name === name)
    ?.secrets

/** A sandbox, and a folder with an endpoint that was registered there. */
export async function registered() {
  const service = await startService()
  const folder = configuredFolder(apiOf(service.url))
  const { serviceId, secretFile } = await answerOf(folder, REGISTER, { now: () => NOW })
  return { service, folder, serviceId: String(serviceId), secretFile: String(secretFile) }
}

export const recordOf = (service: Service, id: string) =>
  service.data(`PATCH /v3/webhook-endpoints/${id}`, {})
