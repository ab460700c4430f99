"""The spaCy component `elmo`."""
