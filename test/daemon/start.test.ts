import { join } from 'node:path'
import { expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import type { Config } from '../../src/config/schema.js'
import { startDaemon } from '../../src/daemon.js'
import { createLogger } from '../../src/log.js'
import { freePort } from '../setup/free-port.js'
import { temporaryFolder } from '../world.js'
import { NOW } from './running-daemon.js'

/** Of a daemon with a port that it must have, and a first backup to make at once. */
async function configOnOnePort(): Promise<Config> {
  const folder = temporaryFolder()
  const told = {
    server: { port: await freePort() },
    endpoints: { live: { environment: 'live', secrets: ['whsec_start_0123456789'] } },
    backup: { folder: join(folder, 'backups') },
  }
  const path = join(folder, 'config.json')
  return loadConfig({ path, env: {}, readFile: () => JSON.stringify(told) }).config
}

/** The part that asks for this of the config fails to start. */
function failingAt(config: Config, name: keyof Config): Config {
  return Object.defineProperty({ ...config }, name, {
    get: () => {
      throw new Error(`There is no ${name}.`)
    },
  })
}

const start = (config: Config) => startDaemon(config, { clock: () => NOW, log: createLogger('silent') })

function statusOf({ server }: Config): Promise<number | null> {
  const answer = fetch(`http://127.0.0.1:${server.port}/healthz`, { headers: { Connection: 'close' } })
  return answer.then(
    ({ status }) => status,
    () => null,
  )
}

// In the order in which a start comes to them: the last two when it listens already.
it.each<keyof Config>(['policy', 'sync', 'server', 'backup', 'retention'])(
  'leaves nothing open where its start fails at the config’s %s, and starts again',
  async (name) => {
    const config = await configOnOnePort()
    await expect(start(failingAt(config, name))).rejects.toThrow(`There is no ${name}.`)
    expect(await statusOf(config)).toBeNull()

    const daemon = await start(config)
    expect(await statusOf(config)).toBe(200)
    await daemon.stop()
    expect(await statusOf(config)).toBeNull()
  },
)
