"""Charts in Vega-Lite."""
