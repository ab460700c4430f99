"""Test the linear classifier of `spacy elmo probe`."""

import numpy as np
import pytest

from spacy_elmo.analysis import linear_classifier as linear


def gaussians(n, rng, *, mixing=None, width=6, n_classes=3):
    """Make random vectors of several classes. All classes have the same normal
    distribution around different centers, so the best possible classifier is linear.

    mixing (np.ndarray | None): A matrix to multiply the vectors with, (width, width).
    RETURNS: Vectors, (n, width); labels, (n,); and the predictions of the best possible
        classifier, (n,).
    """
    centers = np.random.default_rng(9).normal(0, 0.6, (n_classes, width))
    labels = rng.integers(0, n_classes, n)
    vectors = centers[labels] + rng.normal(0, 1, (n, width))
    distances = np.square(vectors[:, None] - centers).sum(2)
    if mixing is not None:
        vectors = vectors @ mixing
    return vectors.astype(np.float32), labels, distances.argmin(1)


@pytest.mark.slow
def test_classifier_is_about_as_good_as_any_can_be():
    rng = np.random.default_rng(0)
    # Mix the columns so that they are highly correlated, which makes training hard.
    mixing = rng.normal(0, 1, (6, 6)) @ np.diag([30, 10, 3, 1, 1, 1])
    mixing = mixing @ np.linalg.qr(rng.normal(0, 1, (6, 6)))[0]
    vectors, labels, _ = gaussians(3000, rng, mixing=mixing)
    model = linear.fit(vectors, labels, 3)
    vectors, labels, best = gaussians(20_000, rng, mixing=mixing)
    possible = (best == labels).mean()
    assert 0.6 < possible < 0.95
    assert possible - 0.02 < (model.predict(vectors) == labels).mean() < possible + 0.01


def test_classifier_depends_on_the_seed_alone(quick):
    vectors, labels, _ = gaussians(500, np.random.default_rng(0))
    models = [linear.fit(vectors, labels, 3, seed=seed) for seed in (1, 1, 2)]
    one, again, other = (model.weight for model in models)
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(one, other, atol=0.1, rtol=0.1)


def test_classifier_ignores_scale_offset_and_constant_columns(quick):
    vectors, labels, _ = gaussians(400, np.random.default_rng(0))
    scale = 2.0 ** np.array([-8, 0, 3, 8, -2, 5])
    odd = np.concatenate([vectors * scale + 4 * scale, np.full((400, 2), 7.0)], 1)
    plain = linear.fit(vectors, labels, 3).predict(vectors)
    found = linear.fit(odd.astype(np.float32), labels, 3).predict(odd)
    assert (found == plain).mean() > 0.99


@pytest.mark.slow
def test_classifier_takes_half_precision_and_little_data():
    vectors = np.array([[1, 0], [0, 1], [1, 0.5], [0, 2]], dtype=np.float16)
    labels = np.array([0, 1, 0, 1])
    assert linear.fit(vectors, labels, 2).predict(vectors).tolist() == [0, 1, 0, 1]


def test_classifier_is_trained_long_enough_on_little_data():
    """Use a rare class: a few steps find the right direction of the weights, but only
    more steps find where the class begins."""
    vectors = np.random.default_rng(0).normal(0, 1, (300, 6)).astype(np.float32)
    labels = (vectors[:, 0] > 1.3).astype(np.int64)
    model = linear.fit(vectors, labels, 2)
    assert (model.predict(vectors) == labels).mean() > 0.95
