"""The parts of scikit-learn that are known here: what each may hold, and what checks it."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from dynsnap.boost._structure import invalid, shown, unchecked
from dynsnap.boost.rebuilt import _arrays, _columns, _compound, _transformers, _trees
from dynsnap.boost.rebuilt._facts import Checker, Facts


@dataclass(frozen=True, slots=True)
class _Kind:
    """A class of scikit-learn.

    Attributes:
        name: Its full name.
        attributes: What an instance may have beside its parameters, and parameters that other
            versions of scikit-learn have.
        check: What checks an instance; None for a part that no prediction asks.
    """

    name: str
    attributes: str
    check: Callable[[Any, Checker], Facts] | None


_FITTED = "n_features_in_ feature_names_in_ classes_"
_TREE = "class_weight max_features_ n_classes_ n_outputs_ tree_"
_FOREST = (
    "_n_samples _n_samples_bootstrap _sample_weight estimator estimator_ estimator_params "
    "estimators_ n_classes_ n_outputs_ oob_decision_function_ oob_score_"
)
_SVM = (
    "C nu epsilon _dual_coef_ _effective_probability _gamma _intercept_ _n_support _num_iter "
    "_probA _probB _sparse class_weight_ dual_coef_ fit_status_ intercept_ n_iter_ shape_fit_ "
    "support_ support_vectors_"
)
_BAYES = "class_count_ class_log_prior_ feature_count_ feature_log_prob_ feature_all_"
_KINDS = (
    # Trees
    *(
        _Kind(f"sklearn.tree._classes.{name}", _TREE, _trees.tree)
        for name in ("DecisionTreeClassifier", "ExtraTreeClassifier", "DecisionTreeRegressor")
    ),
    _Kind("sklearn.ensemble._forest.RandomForestClassifier", _FOREST, _trees.forest),
    _Kind("sklearn.ensemble._forest.ExtraTreesClassifier", _FOREST, _trees.forest),
    _Kind(
        "sklearn.ensemble._gb.GradientBoostingClassifier",
        "_loss _rng alpha estimators_ init_ max_features_ n_classes_ n_estimators_ "
        "n_trees_per_iteration_ oob_improvement_ oob_score_ oob_scores_ train_score_",
        _trees.gradient_boosting,
    ),
    _Kind(
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",
        "_baseline_prediction _bin_mapper _feature_subsample_rng _is_categorical_remapped "
        "_label_encoder _loss _n_features _predictors _preprocessor _random_seed _scorer "
        "_use_validation_data do_early_stopping_ is_categorical_ n_trees_per_iteration_ "
        "train_score_ validation_score_",
        _trees.histogram_boosting,
    ),
    _Kind(
        "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
        "bin_thresholds_ is_categorical_ missing_values_bin_idx_ n_bins_non_missing_",
        None,
    ),
    _Kind(
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "binned_left_cat_bitsets nodes raw_left_cat_bitsets",
        _trees.predictor,
    ),
    _Kind(
        "sklearn.dummy.DummyClassifier",
        "_strategy class_prior_ n_classes_ n_outputs_ sparse_output_",
        _trees.dummy,
    ),
    # Linear models and networks
    _Kind(
        "sklearn.linear_model._logistic.LogisticRegression",
        "coef_ intercept_ n_iter_ multi_class",
        _arrays.linear,
    ),
    _Kind(
        "sklearn.linear_model._logistic.LogisticRegressionCV",
        "C_ Cs_ coef_ coefs_paths_ intercept_ l1_ratio_ l1_ratios_ n_iter_ scores_ multi_class",
        _arrays.linear,
    ),
    _Kind("sklearn.svm._classes.LinearSVC", "coef_ intercept_ n_iter_", _arrays.linear),
    _Kind(
        "sklearn.linear_model._stochastic_gradient.SGDClassifier",
        "C _average_coef _average_intercept _expanded_class_weight _loss_function_ _standard_coef "
        "_standard_intercept coef_ intercept_ n_iter_ t_",
        _arrays.stochastic,
    ),
    _Kind(
        "sklearn.linear_model._ridge.RidgeClassifier",
        "_label_binarizer coef_ intercept_ n_iter_ solver_",
        _arrays.ridge,
    ),
    _Kind(
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
        "_max_components _n_features_out coef_ covariance_ explained_variance_ratio_ intercept_ "
        "means_ priors_ scalings_ xbar_",
        _arrays.linear,
    ),
    _Kind(
        "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",
        "means_ priors_ rotations_ scalings_ covariance_",
        _arrays.discriminant,
    ),
    _Kind(
        "sklearn.neural_network._multilayer_perceptron.MLPClassifier",
        "_best_coefs _best_intercepts _coef_indptr _intercept_indptr _label_binarizer "
        "_no_improvement_count _optimizer _random_state best_loss_ best_validation_score_ coefs_ "
        "intercepts_ loss loss_ loss_curve_ n_iter_ n_layers_ n_outputs_ out_activation_ t_ "
        "validation_scores_",
        _arrays.network,
    ),
    _Kind(
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "beta_1 beta_2 epsilon learning_rate learning_rate_init ms t vs",
        None,
    ),
    _Kind(
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "learning_rate learning_rate_init lr_schedule momentum nesterov power_t velocities",
        None,
    ),
    # Naive Bayes
    _Kind(
        "sklearn.naive_bayes.GaussianNB",
        "class_count_ class_prior_ epsilon_ theta_ var_",
        _arrays.gaussian,
    ),
    *(
        _Kind(f"sklearn.naive_bayes.{name}", _BAYES, _arrays.discrete)
        for name in ("MultinomialNB", "ComplementNB", "BernoulliNB")
    ),
    _Kind(
        "sklearn.naive_bayes.CategoricalNB",
        f"{_BAYES} category_count_ n_categories_",
        _arrays.categorical,
    ),
    # Stored rows
    _Kind("sklearn.svm._classes.SVC", _SVM, _arrays.support_vectors),
    _Kind("sklearn.svm._classes.NuSVC", _SVM, _arrays.support_vectors),
    _Kind(
        "sklearn.neighbors._classification.KNeighborsClassifier",
        "_fit_X _fit_method _tree _y effective_metric_ effective_metric_params_ n_samples_fit_ "
        "outputs_2d_ radius",
        _arrays.neighbors,
    ),
    # Made of others
    _Kind("sklearn.pipeline.Pipeline", "", _compound.pipeline),
    _Kind(
        "sklearn.ensemble._voting.VotingClassifier",
        "estimators_ le_ named_estimators_",
        _compound.voting,
    ),
    _Kind(
        "sklearn.ensemble._stacking.StackingClassifier",
        "_label_encoder _n_feature_outs estimators_ final_estimator_ named_estimators_ "
        "stack_method_",
        _compound.stacking,
    ),
    _Kind(
        "sklearn.ensemble._bagging.BaggingClassifier",
        "_max_features _max_samples _n_samples _sample_weight _seeds estimator_ estimator_params "
        "estimators_ estimators_features_ n_classes_ oob_decision_function_ oob_score_",
        _compound.bagging,
    ),
    _Kind(
        "sklearn.ensemble._weight_boosting.AdaBoostClassifier",
        "estimator_ estimator_errors_ estimator_params estimator_weights_ estimators_ n_classes_ "
        "algorithm",
        _compound.adaptive,
    ),
    _Kind(
        "sklearn.multiclass.OneVsRestClassifier",
        "estimators_ label_binarizer_",
        _compound.one_against_rest,
    ),
    _Kind(
        "sklearn.calibration.CalibratedClassifierCV",
        "calibrated_classifiers_",
        _compound.calibrated,
    ),
    _Kind(
        "sklearn.calibration._CalibratedClassifier",
        "calibrators classes estimator method",
        _compound.calibrated_member,
    ),
    _Kind("sklearn.calibration._SigmoidCalibration", "a_ b_", _compound.sigmoid),
    _Kind(
        "sklearn.isotonic.IsotonicRegression",
        "X_max_ X_min_ X_thresholds_ increasing_ y_thresholds_",
        _compound.isotonic,
    ),
    _Kind("sklearn.preprocessing._label.LabelEncoder", "", None),
    _Kind("sklearn.preprocessing._label.LabelBinarizer", "sparse_input_ y_type_", None),
    # Steps before a classifier
    _Kind(
        "sklearn.preprocessing._data.StandardScaler",
        "_sklearn_output_config mean_ n_samples_seen_ scale_ var_",
        _transformers.scaler,
    ),
    _Kind(
        "sklearn.preprocessing._data.MinMaxScaler",
        "data_max_ data_min_ data_range_ min_ n_samples_seen_ scale_",
        _transformers.scaler,
    ),
    _Kind(
        "sklearn.preprocessing._data.MaxAbsScaler",
        "max_abs_ n_samples_seen_ scale_",
        _transformers.scaler,
    ),
    _Kind("sklearn.preprocessing._data.RobustScaler", "center_ scale_", _transformers.scaler),
    _Kind("sklearn.preprocessing._data.Normalizer", "", _transformers.stateless),
    _Kind("sklearn.preprocessing._data.Binarizer", "", _transformers.stateless),
    _Kind("sklearn.preprocessing._data.PowerTransformer", "_scaler lambdas_", _transformers.power),
    _Kind(
        "sklearn.preprocessing._data.QuantileTransformer",
        "n_quantiles_ quantiles_ references_",
        _transformers.quantiles,
    ),
    _Kind(
        "sklearn.decomposition._pca.PCA",
        "_fit_svd_solver components_ explained_variance_ explained_variance_ratio_ mean_ "
        "n_components_ n_samples_ noise_variance_ singular_values_",
        _transformers.components,
    ),
    _Kind(
        "sklearn.decomposition._truncated_svd.TruncatedSVD",
        "components_ explained_variance_ explained_variance_ratio_ singular_values_",
        _transformers.components,
    ),
    *(
        _Kind(
            f"sklearn.feature_selection._univariate_selection.{name}",
            "pvalues_ scores_",
            _transformers.selection,
        )
        for name in ("SelectKBest", "SelectPercentile")
    ),
    _Kind(
        "sklearn.feature_selection._variance_threshold.VarianceThreshold",
        "variances_",
        _transformers.selection,
    ),
    _Kind("sklearn.pipeline.FeatureUnion", "", _transformers.union),
    _Kind(
        "sklearn.feature_extraction.text.CountVectorizer",
        "_stop_words_id fixed_vocabulary_ vocabulary_",
        _transformers.words,
    ),
    _Kind(
        "sklearn.feature_extraction.text.TfidfVectorizer",
        "_stop_words_id _tfidf fixed_vocabulary_ vocabulary_",
        _transformers.weighted_words,
    ),
    _Kind(
        "sklearn.feature_extraction.text.HashingVectorizer",
        "_stop_words_id",
        _transformers.hashed_words,
    ),
    _Kind("sklearn.feature_extraction.text.TfidfTransformer", "idf_", _transformers.weights),
    # Steps for the columns of a frame
    _Kind(
        "sklearn.compose._column_transformer.ColumnTransformer",
        "_columns _n_features _name_to_fitted_passthrough _remainder _sklearn_output_config "
        "_transformer_to_input_indices force_int_remainder_cols output_indices_ sparse_output_ "
        "transformers_",
        _columns.column_transformer,
    ),
    _Kind(
        "sklearn.preprocessing._function_transformer.FunctionTransformer",
        "_sklearn_output_config",
        _columns.unchanged,
    ),
    _Kind(
        "sklearn.preprocessing._encoders.OneHotEncoder",
        "_default_to_infrequent_mappings _drop_idx_after_grouping _infrequent_enabled "
        "_infrequent_indices _n_features_outs _sklearn_output_config categories_ drop_idx_",
        _columns.one_hot,
    ),
    _Kind(
        "sklearn.preprocessing._encoders.OrdinalEncoder",
        "_default_to_infrequent_mappings _infrequent_enabled _infrequent_indices "
        "_missing_indices _sklearn_output_config categories_",
        _columns.ordinal,
    ),
    _Kind(
        "sklearn.impute._base.SimpleImputer",
        "_fill_dtype _fit_dtype _sklearn_output_config indicator_ statistics_ verbose",
        _columns.imputer,
    ),
    _Kind(
        "sklearn.impute._base.MissingIndicator",
        "_n_features _precomputed _sklearn_output_config features_",
        _columns.missing_indicator,
    ),
)
# Search trees of neighbours, which are grown anew, and what they hold.
_GROWN_ANEW = (
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neighbors._ball_tree.BallTree",
    *(
        f"sklearn.metrics._dist_metrics.{name}Distance64"
        for name in ("Euclidean", "Manhattan", "Chebyshev", "Minkowski", "Hamming", "Canberra")
    ),
)
_FUNCTIONS = ("chi2", "f_classif")


@cache
def functions() -> Mapping[str, Any]:
    """Functions that settings name, by their full names."""
    module = "sklearn.feature_selection._univariate_selection"
    return {
        f"{module}.{name}": getattr(importlib.import_module(module), name) for name in _FUNCTIONS
    }


@cache
def checks() -> dict[type, Callable[[Any, Checker], Facts]]:
    """What checks an instance of each class."""
    return {_load(kind.name): kind.check for kind in _KINDS if kind.check is not None}


@cache
def makers() -> Mapping[str, Callable[[Any], Any]]:
    """What makes an instance of what was stored of it, by the full name of its class."""
    from sklearn.utils import Bunch

    return {
        **{kind.name: _maker(kind) for kind in _KINDS},
        **_trees.makers(),
        **{name: lambda _state: None for name in _GROWN_ANEW},
        "sklearn.tree._tree.Tree": _trees.make_tree,
        "sklearn.utils._bunch.Bunch": lambda state: Bunch(**state),
    }


def _load(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _maker(kind: _Kind) -> Callable[[Any], Any]:
    cls = _load(kind.name)
    params = cls._get_param_names() if hasattr(cls, "_get_param_names") else ()
    allowed = {*params, *kind.attributes.split(), *_FITTED.split(), "_sklearn_version"}

    def make(state: Any) -> Any:
        name = cls.__name__
        if not isinstance(state, dict):
            raise invalid(f"a {name} has no attributes")
        if strange := state.keys() - allowed:
            raise unchecked(f"{shown(sorted(map(str, strange)))} of a {name}")
        if state.get("n_jobs") not in (None, 1):
            raise unchecked(f"a {name} with n_jobs={shown(state['n_jobs'])}")
        made = cls.__new__(cls)
        if hasattr(made, "__setstate__"):
            if not isinstance(state.get("_sklearn_version", ""), str):
                raise invalid("it does not name the version of scikit-learn that wrote it")
            made.__setstate__(dict(state))
        else:
            vars(made).update(state)
        return made

    return make
