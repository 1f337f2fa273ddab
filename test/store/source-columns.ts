/** Of `sources`, all but their numbers: deliveries in another order have sources come to be in another order. */
export const SOURCE_COLUMNS = [
  'environment',
  'kind',
  'source_id',
  'customer_id',
  'state',
  'memory',
  'newest_at',
] as const
