import { describe, expect, it } from 'vitest'
import { load, problems, warnings } from './config-file.js'

const DAY = 86_400_000

describe('retention', () => {
  it('is for ever, and no erasure follows the provider, where the config says nothing', () => {
    expect(load({}).config).toMatchObject({ retention: null, erasure: { onCustomerDeleted: false } })
    expect(load({ erasure: {} }).config.erasure).toEqual({ onCustomerDeleted: false })
  })

  it('is what the config says', () => {
    const config = { retention: { bodiesAfter: '180d' }, erasure: { onCustomerDeleted: true } }
    expect(load(config).config).toMatchObject({
      retention: { bodiesAfterMs: 180 * DAY },
      erasure: { onCustomerDeleted: true },
    })
  })

  it.each([
    [{ retention: {} }, 'retention.bodiesAfter: is required'],
    [{ retention: { bodiesAfter: '6 months' } }, 'retention.bodiesAfter: must be a duration, such as "180d"'],
    [{ retention: { bodiesAfter: '180d', keep: 1 } }, 'retention.keep: is not a known key'],
    [{ erasure: { onCustomerDeleted: 'yes' } }, 'erasure.onCustomerDeleted: must be boolean'],
    [{ erasure: { always: true } }, 'erasure.always: is not a known key'],
  ])('%j is refused', (config, problem) => {
    expect(problems(config)).toEqual([problem])
  })

  it('under 35 days is warned of', () => {
    const warned = (bodiesAfter: string) =>
      warnings({ retention: { bodiesAfter } }).filter((line) => line.startsWith('retention'))
    expect(warned('34d')).toEqual([expect.stringMatching(/^retention\.bodiesAfter: is under 35 days/)])
    expect(warned('35d')).toEqual([])
  })
})
